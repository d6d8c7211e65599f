//! An edit of a layout: what is to change, as data.

use std::fmt;

use crate::clause::{Argument, Clause, EditError, Word};

/// One change of where data lie.
///
/// Displayed, an edit is its short form, which [`edits_from_text`](crate::edits_from_text) reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// `reorder arc: state, tail`: these members come first, in this order; the others follow in
    /// the order that they have.
    Reorder {
        /// The type.
        structure: String,
        /// Members, at least one.
        members: Vec<String>,
    },
    /// `split arc: hot=cost,tail by=index`: the other members move into a record of their own.
    Split {
        /// The type.
        structure: String,
        /// Members that stay, at least one.
        hot: Vec<String>,
        /// The way of the program from the hot part of an element to the cold one.
        by: Link,
    },
    /// `soa arc`: an array for each member; `soa arc: cost, tail`: for each of these, the others
    /// stay together.
    Soa {
        /// The type.
        structure: String,
        /// Members; none: all.
        members: Vec<String>,
    },
    /// `aosoa arc by 8`: blocks of this many elements, each block an array for each member.
    Aosoa {
        /// The type.
        structure: String,
        /// Elements in a block, 2 to 65,536.
        block: u32,
    },
    /// `pad worker to 64`: its size becomes a multiple.
    Pad {
        /// A type or an object.
        subject: String,
        /// The scope that is padded; none: the type if there is one of that name, else the object.
        of: Option<Scope>,
        /// The multiple in bytes, 2 to 1 GiB.
        to: u64,
    },
    /// `align worker to 64`: it begins at multiples, and its size becomes one.
    Align {
        /// A type or an object.
        subject: String,
        /// The scope that is aligned; none: the type if there is one of that name, else the object.
        of: Option<Scope>,
        /// A power of two in bytes, 2 to 1 GiB.
        to: u64,
    },
    /// `align queue: tail, slots to 64`: each of these members begins at a multiple.
    AlignMembers {
        /// The type.
        structure: String,
        /// Members, at least one.
        members: Vec<String>,
        /// A power of two in bytes, 2 to 1 GiB.
        to: u64,
    },
    /// `index node: next, child`: pointers become 32-bit indices.
    Index {
        /// The type.
        structure: String,
        /// Members that are pointers, at least one.
        members: Vec<String>,
    },
    /// `narrow arc: cost to 4`: a member becomes smaller.
    Narrow {
        /// The type.
        structure: String,
        /// The member.
        member: String,
        /// Its new size in bytes: 1, 2 or 4.
        to: u64,
    },
    /// `remove arc: spare`: members go, and so do the accesses to them.
    Remove {
        /// The type.
        structure: String,
        /// Members, at least one.
        members: Vec<String>,
    },
    /// `group x, y`: arrays of equal length become one array of records.
    Group {
        /// Objects, at least two.
        objects: Vec<String>,
    },
    /// `shift out by 256`: the object begins later.
    Shift {
        /// The object.
        object: String,
        /// Bytes, 1 to 1 GiB.
        by: u64,
    },
    /// `per-thread hits`: each thread has a copy of the object, on cache lines of its own.
    PerThread {
        /// The object.
        object: String,
    },
    /// `deal cells by 4`: elements are dealt in turn to this many parts; each part lies together,
    /// on cache lines of its own.
    Deal {
        /// The object.
        object: String,
        /// Parts, 2 to 65,536.
        parts: u32,
    },
    /// `pack node`: objects of the type lie one after the other, in the order of their first use.
    Pack {
        /// The type.
        structure: String,
    },
    /// `pages grid to 2MiB`: the object lies in pages of this size.
    Pages {
        /// The object.
        object: String,
        /// Bytes of a page: a power of two, 4 KiB to 1 GiB.
        to: u64,
    },
    /// `place grid: interleave`: which memory node each page of the object is on.
    Place {
        /// The object.
        object: String,
        /// The policy.
        on: PagePlacement,
    },
}

/// The way of a program from the hot part of an element to its cold part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The hot part holds a pointer of 8 bytes.
    Pointer,
    /// The hot part holds an index of 4 bytes into an array of cold parts.
    Index,
    /// Both parts are arrays, and an element has the same index in each: nothing is loaded.
    Parallel,
}

/// The scope that is padded or aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every object of a type.
    Type,
    /// Each element of one array.
    Element,
    /// One object as a whole.
    Object,
}

/// The memory nodes that an object's pages are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlacement {
    /// Pages alternate between nodes.
    Interleave,
    /// One contiguous part for each node.
    Blockwise,
    /// The node of the thread that touches a page first.
    FirstTouch,
    /// All on this one.
    Node(u32),
}

const GIB: u64 = 1 << 30;

/// The verbs, in the order in which they are explained.
pub(crate) const VERBS: &[&str] = &[
    "reorder",
    "split",
    "soa",
    "aosoa",
    "pad",
    "align",
    "index",
    "narrow",
    "remove",
    "group",
    "shift",
    "per-thread",
    "deal",
    "pack",
    "pages",
    "place",
];

impl Edit {
    /// The objects that it names, or may name: global variables, or lines of allocations.
    pub fn objects(&self) -> &[String] {
        match self {
            Edit::Group { objects } => objects,
            Edit::Pad { subject: object, .. }
            | Edit::Align { subject: object, .. }
            | Edit::Shift { object, .. }
            | Edit::PerThread { object }
            | Edit::Deal { object, .. }
            | Edit::Pages { object, .. }
            | Edit::Place { object, .. } => std::slice::from_ref(object),
            Edit::Reorder { .. }
            | Edit::Split { .. }
            | Edit::Soa { .. }
            | Edit::Aosoa { .. }
            | Edit::AlignMembers { .. }
            | Edit::Index { .. }
            | Edit::Narrow { .. }
            | Edit::Remove { .. }
            | Edit::Pack { .. } => &[],
        }
    }

    /// Understands the words of one edit.
    pub(crate) fn understand(text: &str, clause: &Clause) -> Result<Edit, EditError> {
        let mut words = Words { text, clause, used: Vec::new() };
        let edit = match clause.verb.text.as_str() {
            "reorder" => Edit::Reorder { structure: words.subject()?, members: words.items("member")? },
            "split" => Edit::Split {
                structure: words.subject()?,
                hot: words.list("hot")?,
                by: words.choice("by", &LINKS)?,
            },
            "soa" => Edit::Soa { structure: words.subject()?, members: words.optional_items()? },
            "aosoa" => Edit::Aosoa {
                structure: words.subject()?,
                block: words.number("by", "elements", 2..=65_536, false)? as u32,
            },
            "pad" => Edit::Pad {
                subject: words.subject()?,
                of: words.optional_choice("of", &SCOPES)?,
                to: words.number("to", "bytes", 2..=GIB, false)?,
            },
            "align" if !clause.items.is_empty() => Edit::AlignMembers {
                structure: words.subject()?,
                members: words.items("member")?,
                to: words.number("to", "bytes", 2..=GIB, true)?,
            },
            "align" => Edit::Align {
                subject: words.subject()?,
                of: words.optional_choice("of", &SCOPES)?,
                to: words.number("to", "bytes", 2..=GIB, true)?,
            },
            "index" => Edit::Index { structure: words.subject()?, members: words.items("member")? },
            "narrow" => Edit::Narrow {
                structure: words.subject()?,
                member: words.item("member")?.text,
                to: words.number("to", "bytes", 1..=4, true)?,
            },
            "remove" => Edit::Remove { structure: words.subject()?, members: words.items("member")? },
            "group" => Edit::Group { objects: words.objects()? },
            "shift" => {
                Edit::Shift { object: words.subject()?, by: words.number("by", "bytes", 1..=GIB, false)? }
            }
            "per-thread" => Edit::PerThread { object: words.subject()? },
            "deal" => Edit::Deal {
                object: words.subject()?,
                parts: words.number("by", "parts", 2..=65_536, false)? as u32,
            },
            "pack" => Edit::Pack { structure: words.subject()? },
            "pages" => {
                Edit::Pages { object: words.subject()?, to: words.number("to", "bytes", 4096..=GIB, true)? }
            }
            "place" => Edit::Place { object: words.subject()?, on: words.placement()? },
            other => {
                let known = format!("unknown verb `{other}`{}", suggestion(other, VERBS));
                return Err(EditError::at(text, &clause.verb.span, known));
            }
        };
        words.nothing_left()?;
        Ok(edit)
    }

    /// The type or object that is edited; the first of several objects.
    pub fn subject(&self) -> &str {
        match self {
            Edit::Reorder { structure, .. }
            | Edit::Split { structure, .. }
            | Edit::Soa { structure, .. }
            | Edit::Aosoa { structure, .. }
            | Edit::AlignMembers { structure, .. }
            | Edit::Index { structure, .. }
            | Edit::Narrow { structure, .. }
            | Edit::Remove { structure, .. }
            | Edit::Pack { structure } => structure,
            Edit::Pad { subject, .. } | Edit::Align { subject, .. } => subject,
            Edit::Group { objects } => objects.first().map_or("", String::as_str),
            Edit::Shift { object, .. }
            | Edit::PerThread { object }
            | Edit::Deal { object, .. }
            | Edit::Pages { object, .. }
            | Edit::Place { object, .. } => object,
        }
    }
}

const LINKS: [(&str, Link); 3] =
    [("pointer", Link::Pointer), ("index", Link::Index), ("parallel", Link::Parallel)];
const SCOPES: [(&str, Scope); 3] =
    [("type", Scope::Type), ("element", Scope::Element), ("object", Scope::Object)];

/// `; did you mean …?`, or the list of valid words.
fn suggestion(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(word, known), known));
    match near.min_by_key(|(distance, _)| *distance) {
        Some((distance, near)) if distance <= 2 && distance < near.chars().count() => {
            format!("; did you mean `{near}`?")
        }
        _ => format!("; there are {}", known.join(", ")),
    }
}

/// The words of a clause, taken one by one; words that are left at the end are errors.
struct Words<'a> {
    text: &'a str,
    clause: &'a Clause,
    /// Keys that were used.
    used: Vec<&'static str>,
}

impl Words<'_> {
    fn error(&self, word: &Word, message: impl Into<String>) -> EditError {
        EditError::at(self.text, &word.span, message)
    }

    /// Something is missing: the whole clause is marked.
    fn missing(&self, message: impl Into<String>) -> EditError {
        EditError::at(self.text, &self.clause.span(), message)
    }

    fn verb(&self) -> &str {
        &self.clause.verb.text
    }

    fn subject(&self) -> Result<String, EditError> {
        match &self.clause.subjects[..] {
            [only] if !only.text.is_empty() => Ok(only.text.clone()),
            [only] => Err(self.error(only, "this name is empty")),
            [_, second, ..] => {
                Err(self.error(second, format!("`{}` edits one type or object at a time", self.verb())))
            }
            [] => Err(self.missing("a type or an object is named behind the verb")),
        }
    }

    fn objects(&self) -> Result<Vec<String>, EditError> {
        match &self.clause.subjects[..] {
            all @ [_, _, ..] => self.different(all),
            _ => Err(self.missing("`group` needs at least two arrays")),
        }
    }

    /// Names, none of them twice.
    fn different(&self, words: &[Word]) -> Result<Vec<String>, EditError> {
        let mut names: Vec<String> = Vec::new();
        for word in words {
            if word.text.is_empty() {
                return Err(self.error(word, "this name is empty"));
            }
            if names.contains(&word.text) {
                return Err(self.error(word, format!("`{}` stands here a second time", word.text)));
            }
            names.push(word.text.clone());
        }
        Ok(names)
    }

    fn items(&mut self, what: &str) -> Result<Vec<String>, EditError> {
        self.used.push("");
        if self.clause.items.is_empty() {
            return Err(self.missing(format!("`{}` needs a {what} behind a colon", self.verb())));
        }
        self.different(&self.clause.items)
    }

    fn optional_items(&mut self) -> Result<Vec<String>, EditError> {
        self.used.push("");
        self.different(&self.clause.items)
    }

    fn item(&mut self, what: &str) -> Result<Word, EditError> {
        self.items(what)?;
        match &self.clause.items[..] {
            [only] => Ok(only.clone()),
            [_, second, ..] => Err(self.error(
                second,
                format!("`{}` takes one {what}; write another edit for this one", self.verb()),
            )),
            [] => Err(self.missing(format!("`{}` needs a {what}", self.verb()))),
        }
    }

    fn argument(&mut self, key: &'static str) -> Result<Option<&Argument>, EditError> {
        self.used.push(key);
        let mut all = self.clause.arguments.iter().filter(|argument| argument.key.text == key);
        let first = all.next();
        match all.next() {
            Some(second) => Err(self.error(&second.key, format!("`{key}` stands here a second time"))),
            None => Ok(first),
        }
    }

    fn required(&mut self, key: &'static str, example: &str) -> Result<Argument, EditError> {
        let found = self.argument(key)?.cloned();
        found.ok_or_else(|| {
            self.missing(format!("`{}` needs `{key}`, such as `{example}`", self.clause.verb.text))
        })
    }

    fn one(&self, argument: &Argument) -> Result<Word, EditError> {
        match &argument.values[..] {
            [only] => Ok(only.clone()),
            [_, second, ..] => Err(self.error(second, format!("`{}` has one value", argument.key.text))),
            [] => Err(self.error(&argument.key, format!("`{}` has no value", argument.key.text))),
        }
    }

    fn list(&mut self, key: &'static str) -> Result<Vec<String>, EditError> {
        let argument = self.required(key, &format!("{key}=a,b"))?;
        self.different(&argument.values)
    }

    fn optional_choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Result<Option<T>, EditError> {
        let Some(argument) = self.argument(key)?.cloned() else { return Ok(None) };
        let word = self.one(&argument)?;
        let found = choices.iter().find(|(name, _)| *name == word.text);
        let (_, choice) = found.ok_or_else(|| {
            let known: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            self.error(&word, format!("`{key}` cannot be `{}`{}", word.text, suggestion(&word.text, &known)))
        })?;
        Ok(Some(*choice))
    }

    fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> Result<T, EditError> {
        let known: Vec<_> = choices.iter().map(|(name, _)| format!("{key}={name}")).collect();
        let found = self.optional_choice(key, choices)?;
        found.ok_or_else(|| self.missing(format!("`{}` needs `{key}`: {}", self.verb(), known.join(", "))))
    }

    /// A whole number, which may have a unit such as KiB.
    fn number(
        &mut self,
        key: &'static str,
        unit: &str,
        range: std::ops::RangeInclusive<u64>,
        power_of_two: bool,
    ) -> Result<u64, EditError> {
        let argument = self.required(key, &format!("{key} {}", range.start().max(&8)))?;
        let word = self.one(&argument)?;
        let parsed = parse_size::Config::new().with_binary().parse_size(&word.text).ok();
        let found = parsed.filter(|n| range.contains(n) && (!power_of_two || n.is_power_of_two()));
        found.ok_or_else(|| {
            let kind = if power_of_two { "a power of two" } else { "a number" };
            let message = format!(
                "`{key}` is {kind} of {unit} from {} to {}, not `{}`",
                range.start(),
                range.end(),
                word.text
            );
            self.error(&word, message)
        })
    }

    fn placement(&mut self) -> Result<PagePlacement, EditError> {
        if let Some(argument) = self.argument("node")?.cloned() {
            let word = self.one(&argument)?;
            let node = word.text.parse().map_err(|_| self.error(&word, "a node is a whole number"))?;
            return Ok(PagePlacement::Node(node));
        }
        if self.clause.items.is_empty() {
            return Err(self.missing(
                "`place` needs a policy behind a colon: interleave, blockwise, first-touch or node=0",
            ));
        }
        let word = self.item("policy")?;
        match word.text.as_str() {
            "interleave" => Ok(PagePlacement::Interleave),
            "blockwise" => Ok(PagePlacement::Blockwise),
            "first-touch" => Ok(PagePlacement::FirstTouch),
            other => {
                let known = ["interleave", "blockwise", "first-touch"];
                Err(self.error(&word, format!("unknown policy `{other}`{}", suggestion(other, &known))))
            }
        }
    }

    /// Refuses words that were not used.
    fn nothing_left(&self) -> Result<(), EditError> {
        let verb = self.verb();
        if let Some(item) = self.clause.items.first()
            && !self.used.contains(&"")
        {
            return Err(self.error(item, format!("`{verb}` has no list behind its subject")));
        }
        let known: Vec<_> = self.used.iter().copied().filter(|key| !key.is_empty()).collect();
        let stranger = self.clause.arguments.iter().find(|a| !known.contains(&a.key.text.as_str()));
        let Some(argument) = stranger else { return Ok(()) };
        let key = &argument.key.text;
        let end = if known.is_empty() { String::new() } else { suggestion(key, &known) };
        Err(self.error(&argument.key, format!("`{verb}` has no argument `{key}`{end}")))
    }
}

/// A name as the short form has it: in quotes where a reader would end it early.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut depth = 0_i32;
        let plain = !self.0.is_empty()
            && self.0.chars().all(|c| {
                match c {
                    '<' | '(' | '[' | '{' => depth += 1,
                    '>' | ')' | ']' | '}' => depth -= 1,
                    _ => {}
                }
                let word = c.is_alphanumeric() || "_<>()[]{}*&~.-/$@+".contains(c);
                depth >= 0 && (word || (depth > 0 && " ,:".contains(c)))
            })
            && depth == 0
            && !self.0.contains("->");
        if plain { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0) }
    }
}

fn names(list: &[String]) -> String {
    let names: Vec<_> = list.iter().map(|name| Name(name).to_string()).collect();
    names.join(",")
}

fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], wanted: T) -> &'static str {
    choices.iter().find(|(_, choice)| *choice == wanted).map_or("", |(name, _)| name)
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let subject = Name(self.subject());
        let scope =
            |of: &Option<Scope>| of.map(|of| format!(" of={}", name_of(&SCOPES, of))).unwrap_or_default();
        match self {
            Edit::Reorder { members, .. } => write!(f, "reorder {subject}: {}", names(members)),
            Edit::Split { hot, by, .. } => {
                write!(f, "split {subject}: hot={} by={}", names(hot), name_of(&LINKS, *by))
            }
            Edit::Soa { members, .. } if members.is_empty() => write!(f, "soa {subject}"),
            Edit::Soa { members, .. } => write!(f, "soa {subject}: {}", names(members)),
            Edit::Aosoa { block, .. } => write!(f, "aosoa {subject} by {block}"),
            Edit::Pad { of, to, .. } => write!(f, "pad {subject} to {to}{}", scope(of)),
            Edit::Align { of, to, .. } => write!(f, "align {subject} to {to}{}", scope(of)),
            Edit::AlignMembers { members, to, .. } => {
                write!(f, "align {subject}: {} to {to}", names(members))
            }
            Edit::Index { members, .. } => write!(f, "index {subject}: {}", names(members)),
            Edit::Narrow { member, to, .. } => write!(f, "narrow {subject}: {} to {to}", Name(member)),
            Edit::Remove { members, .. } => write!(f, "remove {subject}: {}", names(members)),
            Edit::Group { objects } => write!(f, "group {}", names(objects)),
            Edit::Shift { by, .. } => write!(f, "shift {subject} by {by}"),
            Edit::PerThread { .. } => write!(f, "per-thread {subject}"),
            Edit::Deal { parts, .. } => write!(f, "deal {subject} by {parts}"),
            Edit::Pack { .. } => write!(f, "pack {subject}"),
            Edit::Pages { to, .. } => {
                let (count, unit) = match to {
                    to if to.is_multiple_of(GIB) => (to / GIB, "GiB"),
                    to if to.is_multiple_of(1 << 20) => (to >> 20, "MiB"),
                    to => (to >> 10, "KiB"),
                };
                write!(f, "pages {subject} to {count}{unit}")
            }
            Edit::Place { on, .. } => {
                write!(f, "place {subject}: ")?;
                match on {
                    PagePlacement::Interleave => f.write_str("interleave"),
                    PagePlacement::Blockwise => f.write_str("blockwise"),
                    PagePlacement::FirstTouch => f.write_str("first-touch"),
                    PagePlacement::Node(node) => write!(f, "node={node}"),
                }
            }
        }
    }
}
