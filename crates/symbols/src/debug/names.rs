//! Names of types, as the recorder's site tables spell them: behind typedefs, in their namespaces, C's
//! plain types in the order of words that clang has.

use std::rc::Rc;

use gimli::AttributeValue;

use super::index::EntryId;
use super::types::Shape;
use super::{Debug, Dwarf, Entry, Unit, name};

/// Pointers and arrays in a type that are followed.
const DEEPEST: usize = 32;

impl Debug {
    /// A type's name for readers: "arc", "arc *", "double".
    pub(crate) fn type_name(&self, kind: EntryId) -> Option<String> {
        let (mut kind, mut behind) = (kind, String::new());
        for _ in 0..DEEPEST {
            let facts = self.type_facts(kind)?;
            match facts.shape {
                Shape::Pointer(Some(to)) if self.type_facts(to).is_some() => {
                    behind.insert(0, '*');
                    kind = to;
                }
                Shape::Pointer(_) => return Some(format!("void *{behind}")),
                Shape::Array(element) => kind = element,
                Shape::Record(_) | Shape::Descriptor(_) | Shape::Plain if behind.is_empty() => {
                    return facts.name.clone();
                }
                Shape::Record(_) | Shape::Descriptor(_) | Shape::Plain => {
                    return Some(format!("{} {behind}", facts.name.as_deref()?));
                }
            }
        }
        None
    }

    /// The name of a record or enumeration, in its namespace. One without a name has that of `alias`, a
    /// typedef for it, or else its place in the source.
    pub(crate) fn qualified_name(&self, id: EntryId, alias: Option<EntryId>) -> Option<String> {
        let named = |id: EntryId| {
            let (number, offset) = self.index().place(id)?;
            let unit = self.index().unit(&self.dwarf, number)?;
            let own = name(&self.dwarf, unit, &unit.entry(offset).ok()?).ok()??;
            Some(format!("{}{own}", self.index().scope(&self.dwarf, id)))
        };
        named(id).or_else(|| named(alias?)).or_else(|| self.nameless(id))
    }

    /// "union {shape.c:12}"
    fn nameless(&self, id: EntryId) -> Option<String> {
        let (number, offset) = self.index().place(id)?;
        let unit = self.index().unit(&self.dwarf, number)?;
        let entry = unit.entry(offset).ok()?;
        let word = match entry.tag() {
            gimli::DW_TAG_union_type => "union",
            gimli::DW_TAG_enumeration_type => "enum",
            gimli::DW_TAG_class_type => "lambda",
            _ => "struct",
        };
        let line = entry.attr_value(gimli::DW_AT_decl_line).ok()??.udata_value()?;
        let AttributeValue::FileIndex(file) = entry.attr_value(gimli::DW_AT_decl_file).ok()?? else {
            return None;
        };
        let path = unit.line_program.as_ref()?.header().file(file)?.path_name();
        let path = self.dwarf.attr_string(unit, path).ok()?;
        let path = gimli::Reader::to_string_lossy(&path).ok()?;
        Some(format!("{word} {{{}:{line}}}", path.rsplit('/').next().unwrap_or_default()))
    }
}

/// A plain type's name with its words in clang's order: "unsigned long" for gcc's "long unsigned int".
pub(crate) fn plain(name: String) -> String {
    let count = |word| name.split(' ').filter(|own| *own == word).count();
    let (long, short, unsigned) = (count("long"), count("short"), count("unsigned"));
    if long + short == 0 || long + short + unsigned + count("int") != name.split(' ').count() {
        return name;
    }
    let words = std::iter::repeat_n("unsigned", unsigned).chain(std::iter::repeat_n("long", long));
    words.chain(std::iter::repeat_n("short", short)).collect::<Vec<_>>().join(" ")
}

/// The namespaces and classes that are open on a walk through a unit's entries.
#[derive(Default)]
pub(crate) struct Scopes {
    /// The beginning of names by depth: "std::".
    open: Vec<Rc<str>>,
}

impl Scopes {
    /// The beginning of the names of entries at a depth.
    pub fn at(&self, depth: isize) -> Rc<str> {
        let outer = usize::try_from(depth - 1).ok().and_then(|outer| self.open.get(outer));
        outer.cloned().unwrap_or_else(|| Rc::from(""))
    }

    /// Opens an entry at a depth, and closes those beside it.
    pub fn enter(&mut self, depth: isize, dwarf: &Dwarf, unit: &Unit, entry: &Entry<'_, '_>) {
        let own = || name(dwarf, unit, entry).ok().flatten();
        let outer = self.at(depth);
        let inner = match entry.tag() {
            gimli::DW_TAG_namespace => {
                let own = own().unwrap_or_else(|| "(anonymous namespace)".to_owned());
                Rc::from(format!("{outer}{own}::"))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
                if entry.has_children() =>
            {
                own().map_or_else(|| Rc::from(""), |own| Rc::from(format!("{outer}{own}::")))
            }
            // What is in a function goes by its own name.
            _ => Rc::from(""),
        };
        self.open.resize(usize::try_from(depth).unwrap_or_default(), Rc::from(""));
        self.open.push(inner);
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn compilers_spell_plain_types_alike() {
        for (name, spelled) in [
            ("long unsigned int", "unsigned long"),
            ("long int", "long"),
            ("long long unsigned int", "unsigned long long"),
            ("short unsigned int", "unsigned short"),
            ("unsigned int", "unsigned int"),
            ("unsigned long", "unsigned long"),
            ("long double", "long double"),
            ("unsigned char", "unsigned char"),
            ("complex long double", "complex long double"),
        ] {
            assert_eq!(plain(name.to_owned()), spelled);
        }
    }
}
