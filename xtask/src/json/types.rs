//! Types as serde writes them: what members an object has, and of what shape each is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::{Attribute, Fields, GenericArgument, Item, Meta, PathArguments};

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Text,
    Boolean,
    Number,
    /// It may be negative.
    Integer(bool),
    /// Any value of its column.
    Any,
    Nullable(Box<Shape>),
    List(Box<Shape>),
    /// An object whose keys are names: those of levels, say.
    Named(Box<Shape>),
    /// A list of these.
    Tuple(Vec<Shape>),
    /// A type with a definition, by its name there.
    Defined(String),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    pub doc: String,
    pub shape: Shape,
    /// It is in every object.
    pub is_required: bool,
}

/// One of the forms that an object has.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// For each type with forms that it contains, the member that selects the form, and its value.
    pub tags: Vec<(String, String, String)>,
    pub members: Vec<Member>,
}

/// The type that a name stands for.
pub enum Definition {
    /// An object of one of these forms.
    Object { doc: String, forms: Vec<Form> },
    /// One of a few words, each with its meaning, or an object with one member that names its
    /// contents.
    Words { doc: String, words: Vec<(String, String)>, forms: Vec<Form> },
}

/// Items by name.
#[derive(Default)]
pub struct Types {
    items: BTreeMap<String, Item>,
}

/// A type as it is written, without references and lifetimes.
#[derive(Clone)]
enum Type {
    /// The first and the last name of its path, and its arguments.
    Path {
        first: String,
        name: String,
        arguments: Vec<Type>,
    },
    Slice(Box<Type>),
    Tuple(Vec<Type>),
}

/// Types that stand for a parameter.
type Parameters = BTreeMap<String, Type>;

impl Types {
    /// Adds the types of a file, but for those whose names are known.
    pub fn read(&mut self, file: &Path) -> Result<()> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
        for item in parsed.items {
            let name = match &item {
                Item::Struct(item) => item.ident.to_string(),
                Item::Enum(item) => item.ident.to_string(),
                _ => continue,
            };
            self.items.entry(name).or_insert(item);
        }
        Ok(())
    }

    /// The shape of a type.
    pub fn shape_of(&self, text: &str) -> Result<Shape> {
        self.shape(&read(&syn::parse_str(text)?, &Parameters::new())?)
    }

    /// The definitions that shapes need, with all that those need.
    pub fn definitions<'s>(
        &self,
        shapes: impl Iterator<Item = &'s Shape>,
    ) -> Result<BTreeMap<String, Definition>> {
        let mut open: Vec<String> = Vec::new();
        shapes.for_each(|shape| needed(shape, &mut open));
        let mut found = BTreeMap::new();
        let mut known: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !known.insert(name.clone()) {
                continue;
            }
            let definition = self.definition(&name).with_context(|| name.clone())?;
            let (Definition::Object { forms, .. } | Definition::Words { forms, .. }) = &definition;
            forms.iter().flat_map(|form| &form.members).for_each(|one| needed(&one.shape, &mut open));
            found.insert(name, definition);
        }
        Ok(found)
    }

    fn definition(&self, text: &str) -> Result<Definition> {
        let (name, arguments) = path(read(&syn::parse_str(text)?, &Parameters::new())?)?;
        let item = self.items.get(&name).with_context(|| format!("no type {name} is known"))?;
        match item {
            Item::Enum(of) if tag(&of.attrs)?.is_none() => self.words(of),
            Item::Struct(syn::ItemStruct { attrs, .. }) | Item::Enum(syn::ItemEnum { attrs, .. }) => {
                Ok(Definition::Object { doc: doc(attrs), forms: self.forms(&name, &arguments)? })
            }
            _ => bail!("{name} is no type that is printed"),
        }
    }

    /// An enumeration without a tag.
    fn words(&self, of: &syn::ItemEnum) -> Result<Definition> {
        let style = option(&of.attrs, "rename_all")?.unwrap_or_default();
        let (mut words, mut forms) = (Vec::new(), Vec::new());
        for variant in &of.variants {
            let (name, doc) = (renamed(&variant.ident.to_string(), &style)?, doc(&variant.attrs));
            match &variant.fields {
                Fields::Unit => words.push((name, doc)),
                Fields::Unnamed(fields) => {
                    let shape = self.shape(&read(&fields.unnamed[0].ty, &Parameters::new())?)?;
                    let member = Member { name, doc, shape, is_required: true };
                    forms.push(Form { tags: Vec::new(), members: vec![member] });
                }
                Fields::Named(_) => bail!("a form of {} has names and no tag", of.ident),
            }
        }
        Ok(Definition::Words { doc: doc(&of.attrs), words, forms })
    }

    /// The forms of an object of a type: one of a structure, one for each variant of an enumeration.
    fn forms(&self, name: &str, arguments: &[Type]) -> Result<Vec<Form>> {
        match self.items.get(name) {
            Some(Item::Struct(item)) => {
                let parameters = parameters(&item.generics, arguments);
                self.with_fields(vec![Form::default()], &item.fields, &parameters)
            }
            Some(Item::Enum(item)) => {
                let parameters = parameters(&item.generics, arguments);
                let tag = tag(&item.attrs)?.with_context(|| format!("{name} has no tag"))?;
                let style = option(&item.attrs, "rename_all")?.unwrap_or_default();
                let mut forms = Vec::new();
                for variant in &item.variants {
                    let word = renamed(&variant.ident.to_string(), &style)?;
                    let form =
                        Form { tags: vec![(tag.clone(), word, doc(&variant.attrs))], members: Vec::new() };
                    forms.extend(match &variant.fields {
                        Fields::Unnamed(fields) => {
                            self.flattened(vec![form], read(&fields.unnamed[0].ty, &parameters)?)?
                        }
                        fields => self.with_fields(vec![form], fields, &parameters)?,
                    });
                }
                Ok(forms)
            }
            _ => bail!("no type {name} is known"),
        }
    }

    /// Adds fields to forms; each form once for each form of a field whose members stand in the object itself.
    fn with_fields(
        &self,
        mut forms: Vec<Form>,
        fields: &Fields,
        parameters: &Parameters,
    ) -> Result<Vec<Form>> {
        for field in fields {
            let (ty, attributes) = (&field.ty, &field.attrs);
            if has(attributes, "flatten")? {
                forms = self.flattened(forms, read(ty, parameters)?)?;
                continue;
            }
            if has(attributes, "skip")? {
                continue;
            }
            let own = field.ident.as_ref().context("a field has no name")?.to_string();
            let member = Member {
                name: option(attributes, "rename")?.unwrap_or(own),
                doc: doc(attributes),
                shape: match option(attributes, "serialize_with")?.or(option(attributes, "with")?) {
                    Some(_) => Shape::Text,
                    None => self.shape(&read(ty, parameters)?)?,
                },
                is_required: option(attributes, "skip_serializing_if")?.is_none(),
            };
            forms.iter_mut().for_each(|form| form.members.push(member.clone()));
        }
        Ok(forms)
    }

    fn flattened(&self, forms: Vec<Form>, ty: Type) -> Result<Vec<Form>> {
        let (mut name, mut arguments) = path(ty)?;
        let is_optional = name == "Option";
        if is_optional {
            (name, arguments) = path(arguments.pop().context("an option of nothing")?)?;
        }
        let mut added = self.forms(&name, &arguments)?;
        if is_optional {
            let members = added.iter_mut().flat_map(|form| &mut form.members);
            members.for_each(|member| member.is_required = false);
        }
        let both = |form: &Form, more: &Form| Form {
            tags: [&form.tags[..], &more.tags].concat(),
            members: [&form.members[..], &more.members].concat(),
        };
        Ok(forms.iter().flat_map(|form| added.iter().map(move |more| both(form, more))).collect())
    }

    fn shape(&self, ty: &Type) -> Result<Shape> {
        let (first, name, arguments) = match ty {
            Type::Slice(of) => return Ok(Shape::List(Box::new(self.shape(of)?))),
            Type::Tuple(all) => {
                return Ok(Shape::Tuple(all.iter().map(|ty| self.shape(ty)).collect::<Result<_>>()?));
            }
            Type::Path { first, name, arguments } => (first, name, arguments),
        };
        let inner = |at: usize| -> Result<Box<Shape>> {
            Ok(Box::new(self.shape(arguments.get(at).with_context(|| format!("{name} of nothing"))?)?))
        };
        Ok(match name.as_str() {
            "String" | "str" | "Word" | "Cow" | "PathBuf" => Shape::Text,
            "bool" => Shape::Boolean,
            "f64" | "f32" => Shape::Number,
            "u8" | "u16" | "u32" | "u64" | "usize" => Shape::Integer(false),
            "i8" | "i16" | "i32" | "i64" | "isize" => Shape::Integer(true),
            "Value" if first == "serde_json" => Shape::Any,
            "Option" => Shape::Nullable(inner(0)?),
            "Vec" => Shape::List(inner(0)?),
            "Box" | "Arc" => *inner(0)?,
            "BTreeMap" => Shape::Named(inner(1)?),
            "ByLevel" => Shape::Named(inner(0)?),
            _ => {
                let arguments: Vec<String> =
                    arguments.iter().map(|ty| Ok(path(ty.clone())?.0)).collect::<Result<_>>()?;
                let of =
                    if arguments.is_empty() { String::new() } else { format!("<{}>", arguments.join(", ")) };
                Shape::Defined(name.clone() + &of)
            }
        })
    }
}

/// Adds the names that a shape needs.
fn needed(shape: &Shape, names: &mut Vec<String>) {
    match shape {
        Shape::Defined(name) => names.push(name.clone()),
        Shape::Nullable(of) | Shape::List(of) | Shape::Named(of) => needed(of, names),
        Shape::Tuple(all) => all.iter().for_each(|shape| needed(shape, names)),
        _ => {}
    }
}

/// A type with what stands for its parameters.
fn read(ty: &syn::Type, parameters: &Parameters) -> Result<Type> {
    Ok(match ty {
        syn::Type::Reference(of) => read(&of.elem, parameters)?,
        syn::Type::Slice(of) => Type::Slice(Box::new(read(&of.elem, parameters)?)),
        syn::Type::Tuple(of) => {
            Type::Tuple(of.elems.iter().map(|ty| read(ty, parameters)).collect::<Result<_>>()?)
        }
        syn::Type::Path(of) => {
            let names = &of.path.segments;
            let (first, last) = names.first().zip(names.last()).context("a path has no name")?;
            let name = last.ident.to_string();
            if let Some(known) = of.path.get_ident().and_then(|_| parameters.get(&name)) {
                return Ok(known.clone());
            }
            let arguments = match &last.arguments {
                PathArguments::AngleBracketed(of) => {
                    let types = of.args.iter().filter_map(|argument| match argument {
                        GenericArgument::Type(ty) => Some(read(ty, parameters)),
                        _ => None,
                    });
                    types.collect::<Result<_>>()?
                }
                _ => Vec::new(),
            };
            Type::Path { first: first.ident.to_string(), name, arguments }
        }
        _ => bail!("a type is printed that has no name"),
    })
}

/// The last name of a type's path, and its arguments.
fn path(ty: Type) -> Result<(String, Vec<Type>)> {
    match ty {
        Type::Path { name, arguments, .. } => Ok((name, arguments)),
        _ => bail!("the members of a list are printed where those of a type were expected"),
    }
}

fn parameters(generics: &syn::Generics, arguments: &[Type]) -> Parameters {
    let names = generics.type_params().map(|parameter| parameter.ident.to_string());
    names.zip(arguments.iter().cloned()).collect()
}

/// The doc comment in one line.
fn doc(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(of) if of.path.is_ident("doc") => match &of.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Some(text.value().trim().to_string())
            }
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join(" ")
}

/// The value of one of serde's options.
fn option(attributes: &[Attribute], name: &str) -> Result<Option<String>> {
    let mut found = None;
    each_option(attributes, |option, value| {
        if option == name {
            found = Some(value.unwrap_or_default());
        }
    })?;
    Ok(found)
}

fn has(attributes: &[Attribute], name: &str) -> Result<bool> {
    Ok(option(attributes, name)?.is_some())
}

fn tag(attributes: &[Attribute]) -> Result<Option<String>> {
    option(attributes, "tag")
}

fn each_option(attributes: &[Attribute], mut of: impl FnMut(String, Option<String>)) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            let value = match meta.value() {
                Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                Err(_) => None,
            };
            of(meta.path.get_ident().map(ToString::to_string).unwrap_or_default(), value);
            Ok(())
        })?;
    }
    Ok(())
}

/// A variant's name as serde writes it.
fn renamed(name: &str, style: &str) -> Result<String> {
    let mark = match style {
        "" => return Ok(name.to_string()),
        "snake_case" => '_',
        "kebab-case" => '-',
        "lowercase" => return Ok(name.to_lowercase()),
        _ => bail!("names in {style} are not known here"),
    };
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_uppercase() && at > 0 {
            out.push(mark);
        }
        out.extend(c.to_lowercase());
    }
    Ok(out)
}
