//! Uses of a structure that depend on where its members lie, or on its size: each forbids a patch.

use std::collections::{HashMap, HashSet};

use clang_sys::*;
use memlode_layout::Layout;

use crate::by_hand::{ALIGN_MEMORY, FOLLOW_BYTES, FOLLOW_POINTER, Reason, at_use};
use crate::clang::{Node, Spot, Tree};
use crate::initialisers;
use crate::record::Record;

/// The changes that an edit makes, as far as uses may depend on them.
pub struct Change {
    /// Members come in another order, or some are gone.
    pub moves: bool,
    /// Sizes or alignments differ, of the structure or of one that contains it.
    pub resizes: bool,
    /// Objects need more alignment than allocators give.
    pub aligns: bool,
    /// Members become part of something else: a program that uses them is edited by hand.
    pub is_by_hand: bool,
    /// Members that are gone, or become part of something else.
    pub gone: HashSet<String>,
    /// Members with objects of classes, of which the order is another.
    swaps: Vec<usize>,
}

impl Change {
    /// Compares a layout with the compiled one. `order` has the remaining members.
    pub fn of(tree: &Tree, record: &Record, layout: &Layout, order: &[usize]) -> Change {
        let parts = layout.parts();
        let was = layout.structure();
        let is_narrowed = |part: &memlode_layout::Part| {
            part.slots.iter().any(|slot| slot.was.is_some() && slot.bytes != slot.was_bytes)
        };
        let is_by_hand =
            parts.len() > 1 || parts[0].block > 1 || layout.link().is_some() || parts.iter().any(is_narrowed);
        let names = |at: &usize| tree.nodes[record.fields[*at]].name.clone();
        let stays = |at: &usize| {
            let name = names(at);
            if layout.tail().is_some_and(|tail| tail.name == name) {
                return true;
            }
            let slot = parts[0].slots.iter().find(|slot| slot.names.contains(&name));
            parts[0].block == 1 && slot.is_some_and(|slot| slot.bytes == slot.was_bytes)
        };
        let gone =
            (0..record.fields.len()).filter(|at| !order.contains(at) || !stays(at)).map(|at| names(&at));
        let moves =
            order.len() != record.fields.len() || order.iter().enumerate().any(|(now, was)| now != *was);
        let resizes = parts[0].stride != was.bytes || parts[0].align != was.align;
        let users = |at: &usize| {
            let ty = &tree.nodes[record.fields[*at]].ty;
            ty.pointers == 0
                && !ty.is_plain
                && ty.record.is_some_and(|spot| tree.nodes.iter().any(|node| node.spot == Some(spot)))
        };
        let objects: Vec<usize> = order.iter().copied().filter(users).collect();
        let swaps =
            match objects.is_sorted() && objects.len() == (0..record.fields.len()).filter(users).count() {
                true => Vec::new(),
                false => objects,
            };
        let aligns = parts[0].align > 16 && parts[0].align > was.align;
        Change { moves, resizes, aligns, is_by_hand, gone: gone.collect(), swaps }
    }
}

/// Functions of memory, whose effect on objects does not depend on members.
const OF_MEMORY: [&str; 20] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memset",
    "memcpy",
    "memmove",
    "mempcpy",
    "bzero",
    "explicit_bzero",
    "qsort",
    "qsort_r",
    "bsearch",
    "mmap",
    "munmap",
    "alloca",
    "operator new",
];

/// Functions of those with the number of bytes as their last argument.
const OF_BYTES: [&str; 11] = [
    "memset",
    "memcpy",
    "memmove",
    "mempcpy",
    "bzero",
    "explicit_bzero",
    "memcmp",
    "memchr",
    "strncpy",
    "read",
    "write",
];

/// Looks at a unit's uses of a structure.
pub struct Uses<'a> {
    /// The unit.
    pub tree: &'a Tree,
    /// The definition.
    pub record: &'a Record,
    /// The edit.
    pub change: &'a Change,
    /// The layout that it makes.
    pub layout: &'a Layout,
    /// Texts of its files, by number.
    pub texts: &'a HashMap<usize, String>,
    /// Members by the place of their declaration.
    pub fields: HashMap<Spot, usize>,
    /// The structure, and those that hold it by value.
    pub holders: HashSet<Spot>,
}

/// Returns the cursors that forbid an edit, each with its reason.
pub fn places(
    tree: &Tree,
    record: &Record,
    change: &Change,
    layout: &Layout,
    texts: &HashMap<usize, String>,
) -> Vec<(usize, Reason)> {
    let fields = record.fields.iter().filter_map(|field| Some((tree.nodes[*field].spot?, *field))).collect();
    let mut uses =
        Uses { tree, record, change, layout, texts, fields, holders: HashSet::from([record.spot]) };
    loop {
        let more: Vec<Spot> = tree
            .nodes
            .iter()
            .filter(|node| node.kind == CXCursor_FieldDecl && uses.holds(node))
            .filter_map(|node| tree.nodes[node.parent].spot)
            .filter(|spot| !uses.holders.contains(spot))
            .collect();
        if more.is_empty() {
            break;
        }
        uses.holders.extend(more);
    }
    let mut found = Vec::new();
    uses.definition(&mut found);
    for at in 0..tree.nodes.len() {
        if let Some(why) = uses.why(at) {
            found.push((at, why));
        }
    }
    found
}

impl Uses<'_> {
    /// Returns whether a value of this type has the structure in it.
    pub fn holds(&self, node: &Node) -> bool {
        node.ty.pointers == 0 && node.ty.record.is_some_and(|record| self.holders.contains(&record))
    }

    fn points(&self, node: &Node) -> bool {
        node.ty.pointers == 1 && node.ty.record.is_some_and(|record| self.holders.contains(&record))
    }

    /// The cursor inside of parentheses and implicit conversions.
    pub fn strip(&self, mut at: usize) -> usize {
        while matches!(self.tree.nodes[at].kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr) {
            let mut children = self.tree.children(at);
            match (children.next(), children.next()) {
                (Some(only), None) => at = only,
                _ => break,
            }
        }
        at
    }

    /// The cursor around parentheses and implicit conversions.
    fn outer(&self, at: usize) -> Option<usize> {
        let wraps =
            |at: &usize| matches!(self.tree.nodes[*at].kind, CXCursor_UnexposedExpr | CXCursor_ParenExpr);
        self.tree.around(at).find(|at| !wraps(at))
    }

    /// The byte that a source has at the beginning of a cursor.
    pub fn first_byte(&self, at: usize) -> Option<u8> {
        let node = &self.tree.nodes[at];
        let text = self.texts.get(&node.spot?.file)?;
        text.as_bytes().get(node.extent.start).copied()
    }

    /// Adds the places of the definition that forbid the edit.
    fn definition(&self, found: &mut Vec<(usize, Reason)>) {
        let nodes = &self.tree.nodes;
        let own: Vec<usize> = self.tree.children(self.record.node).collect();
        if nodes[self.record.node].kind == CXCursor_UnionDecl {
            found.push((self.record.node, Reason::new("it is a union", "make it a structure first")));
        }
        if !self.change.moves {
            return;
        }
        let (first, last) = (self.record.fields[0], self.record.fields[self.record.fields.len() - 1]);
        for &at in &own {
            let node = &nodes[at];
            if node.kind == CXCursor_CXXAccessSpecifier && (first..last).contains(&at) {
                found.push((
                    at,
                    Reason::new("access to its members changes here", "keep the access of each member"),
                ));
            }
            if node.name.starts_with("operator<=>") {
                let why = "it is compared in the order of its members";
                found.push((at, Reason::new(why, "write the comparison member by member")));
            }
            let depends = |inside: usize| {
                let node = &nodes[inside];
                let is_own = node.refers.is_some_and(|spot| self.fields.contains_key(&spot));
                let calls = node.kind == CXCursor_CallExpr && !node.refers_to_system;
                (node.kind == CXCursor_MemberRefExpr && is_own) || calls || initialisers::writes(node)
            };
            if node.kind == CXCursor_FieldDecl && self.tree.inside(at).any(depends) {
                let why = format!("the initialiser of {} depends on what was initialised before", node.name);
                found.push((at, Reason::new(why, "initialise it in the bodies of constructors")));
            }
        }
        for at in &self.change.swaps {
            let field = self.record.fields[*at];
            let why = "objects are created and destroyed in the order of their declaration";
            found.push((field, Reason::new(why, "see that none of them needs another one, and move it")));
        }
    }

    fn why(&self, at: usize) -> Option<Reason> {
        let node = &self.tree.nodes[at];
        let referred =
            node.refers.and_then(|spot| self.fields.get(&spot)).map(|field| &self.tree.nodes[*field]);
        if let Some(field) = referred
            && self.change.gone.contains(&field.name)
            && node.kind != CXCursor_FieldDecl
        {
            return Some(Reason::new(format!("{} is used", field.name), at_use(self.layout, &field.name)));
        }
        match node.kind {
            CXCursor_InitListExpr | CXCursor_CXXParenListInitExpr if self.change.moves => {
                initialisers::why(self, at)
            }
            CXCursor_MemberRef => self.offset(at),
            CXCursor_UnaryOperator if node.operator == CXUnaryOperator_AddrOf => self.address(at),
            CXCursor_MemberRefExpr => self.array(at, referred?),
            CXCursor_CStyleCastExpr
            | CXCursor_CXXReinterpretCastExpr
            | CXCursor_CXXFunctionalCastExpr
            | CXCursor_CXXStaticCastExpr => self.cast(at),
            CXCursor_CallExpr => self.call(at),
            CXCursor_UnexposedExpr => self.allocated(at),
            CXCursor_UnaryExpr if self.change.resizes => self.size(at),
            CXCursor_FieldDecl
                if self.tree.nodes[node.parent].kind == CXCursor_UnionDecl && self.holds(node) =>
            {
                let task = "see that the other members of the union still mean what they do";
                Some(Reason::new("it shares its bytes with others in a union", task))
            }
            CXCursor_AsmStmt => {
                let depends = self.tree.inside(at).any(|inside| self.points(&self.tree.nodes[inside]));
                depends.then(|| Reason::new("inline assembly uses it", "take offsets from `offsetof` there"))
            }
            _ => None,
        }
    }

    /// `offsetof`, in any form; a designator and the initialiser of a constructor are none.
    fn offset(&self, at: usize) -> Option<Reason> {
        let node = &self.tree.nodes[at];
        let spot = node.refers?;
        let is_own = self.change.moves && self.fields.contains_key(&spot);
        let of_holder = || {
            let field = self
                .tree
                .nodes
                .iter()
                .find(|field| field.kind == CXCursor_FieldDecl && field.spot == Some(spot));
            field.is_some_and(|field| {
                self.tree.nodes[field.parent].spot.is_some_and(|spot| self.holders.contains(&spot))
            })
        };
        let depends = is_own || (self.change.resizes && of_holder());
        if !depends {
            return None;
        }
        let parent = &self.tree.nodes[node.parent];
        let is_designator = matches!(self.first_byte(node.parent), Some(b'.' | b'['))
            && self.tree.around(at).any(|up| self.tree.nodes[up].kind == CXCursor_InitListExpr);
        let is_constructor = matches!(parent.kind, CXCursor_Constructor | CXCursor_FunctionTemplate);
        let task = "see that what has the offset may get another one";
        let why = || Reason::new(format!("the offset of {} is used", node.name), task);
        (!is_designator && !is_constructor).then(why)
    }

    /// The address of a member that leaves the expression.
    fn address(&self, at: usize) -> Option<Reason> {
        let mut inner = self.strip(self.tree.children(at).next()?);
        let mut is_element = false;
        while self.tree.nodes[inner].kind == CXCursor_ArraySubscriptExpr {
            inner = self.strip(self.tree.children(inner).next()?);
            is_element = true;
        }
        let member = &self.tree.nodes[inner];
        let spot = member.refers.filter(|_| member.kind == CXCursor_MemberRefExpr)?;
        self.fields.get(&spot)?;
        let is_whole = is_element || (member.ty.record.is_some() && member.ty.pointers == 0);
        let name = &member.name;
        let up = self.outer(at)?;
        let node = &self.tree.nodes[up];
        match node.kind {
            CXCursor_CallExpr => {
                let mem = self.bytes(up, member);
                let is_known = is_whole || node.refers_to_system || node.name.starts_with("__");
                (mem.is_some() || !is_known).then(|| pointer(format!("the address of {name} is passed on")))
            }
            CXCursor_UnaryOperator | CXCursor_MemberRefExpr => None,
            CXCursor_BinaryOperator
                if node.operator == CXBinaryOperator_EQ || node.operator == CXBinaryOperator_NE =>
            {
                None
            }
            CXCursor_BinaryOperator if node.operator != CXBinaryOperator_Assign => {
                (!is_element).then(|| pointer(format!("the address of {name} is calculated with")))
            }
            CXCursor_CStyleCastExpr | CXCursor_CXXReinterpretCastExpr if node.ty.is_void || is_element => {
                let call = self.outer(up).filter(|up| self.tree.nodes[*up].kind == CXCursor_CallExpr);
                match call {
                    Some(call)
                        if self.tree.nodes[call].refers_to_system && self.bytes(call, member).is_none() =>
                    {
                        None
                    }
                    _ => Some(pointer(format!("the address of {name} becomes another pointer"))),
                }
            }
            CXCursor_CStyleCastExpr | CXCursor_CXXReinterpretCastExpr | CXCursor_ArraySubscriptExpr => {
                Some(pointer(format!("the address of {name} is calculated with")))
            }
            _ if is_whole => None,
            _ => Some(pointer(format!("the address of {name} is kept"))),
        }
    }

    /// A member that is an array, as a pointer.
    fn array(&self, at: usize, field: &Node) -> Option<Reason> {
        let up = self.outer(at).filter(|_| field.ty.is_array)?;
        let node = &self.tree.nodes[up];
        match node.kind {
            CXCursor_CallExpr => {
                self.bytes(up, field).map(|()| pointer(format!("more than {} may be accessed", field.name)))
            }
            CXCursor_CStyleCastExpr | CXCursor_CXXReinterpretCastExpr => {
                let is_text = |spelling: &str| spelling.contains("char");
                let is_same = is_text(&node.ty.spelling) && is_text(&field.ty.spelling);
                let why = || pointer(format!("{} becomes another pointer", field.name));
                (!is_same && !node.ty.is_void).then(why)
            }
            _ => None,
        }
    }

    /// Returns something if a function of bytes may reach beyond a member.
    fn bytes(&self, call: usize, member: &Node) -> Option<()> {
        let name = self.tree.nodes[call].name.trim_start_matches("__builtin_");
        if !OF_BYTES.contains(&name) {
            return None;
        }
        let last = self.strip(self.tree.children(call).last()?);
        match self.tree.nodes[last].value {
            Some(bytes) => (bytes > member.ty.bytes).then_some(()),
            None => (!member.ty.is_array).then_some(()),
        }
    }

    /// A pointer to the structure that becomes another one, or the other way round.
    fn cast(&self, at: usize) -> Option<Reason> {
        let node = &self.tree.nodes[at];
        let operand = self.tree.children(at).filter(|child| {
            let kind = self.tree.nodes[*child].kind;
            kind != CXCursor_TypeRef && kind != CXCursor_NamespaceRef
        });
        let operand = &self.tree.nodes[self.strip(operand.last()?)];
        let from_array = operand.ty.is_array && self.holds(operand);
        let is_same = node.ty.record == operand.ty.record;
        if (self.points(operand) || from_array) && node.ty.pointers > 0 {
            let is_plain = node.ty.is_void || is_same || node.kind == CXCursor_CXXStaticCastExpr;
            return (!is_plain).then(|| Reason::new("a pointer to it becomes another pointer", FOLLOW_BYTES));
        }
        let is_pointer = operand.ty.pointers > 0 || operand.ty.is_array;
        if self.points(node) && is_pointer && !is_same {
            if !operand.ty.is_void && node.kind != CXCursor_CXXStaticCastExpr {
                return Some(Reason::new("another pointer becomes one to it", FOLLOW_BYTES));
            }
            return self.is_too_loose(at);
        }
        None
    }

    /// An implicit conversion of an allocator's result.
    fn allocated(&self, at: usize) -> Option<Reason> {
        let node = &self.tree.nodes[at];
        let operand = self.tree.nodes.get(self.tree.children(at).next()?)?;
        let converts = self.points(node) && operand.ty.is_void && operand.ty.pointers == 1;
        converts.then(|| self.is_too_loose(at)).flatten()
    }

    fn is_too_loose(&self, at: usize) -> Option<Reason> {
        if !self.change.aligns {
            return None;
        }
        let is_aligned = |inside: usize| {
            let node = &self.tree.nodes[inside];
            node.kind == CXCursor_CallExpr && matches!(node.name.as_str(), "aligned_alloc" | "mmap")
        };
        let has = self.tree.inside(at).any(is_aligned);
        (!has).then(|| Reason::new("this memory may be aligned to less than the structure", ALIGN_MEMORY))
    }

    /// A call that gets the structure as bytes.
    fn call(&self, at: usize) -> Option<Reason> {
        let node = &self.tree.nodes[at];
        let name =
            node.name.trim_start_matches("__builtin_").trim_end_matches("_chk").trim_start_matches("__");
        let arguments: Vec<usize> = self.tree.children(at).skip(1).collect();
        let is_bytes = |argument: &usize| {
            let ty = &self.tree.nodes[*argument].ty;
            let inner = &self.tree.nodes[self.strip(*argument)];
            let inner = match inner.kind {
                CXCursor_CStyleCastExpr | CXCursor_CXXStaticCastExpr => {
                    let operand = self.tree.children(self.strip(*argument)).last();
                    operand.map_or(inner, |operand| &self.tree.nodes[self.strip(operand)])
                }
                _ => inner,
            };
            let is_its = self.points(inner) || (inner.ty.is_array && self.holds(inner));
            ty.is_void && ty.pointers == 1 && is_its
        };
        let ours = arguments.iter().filter(|argument| is_bytes(argument)).count();
        if ours == 0 {
            return None;
        }
        let size = arguments.last().map(|last| self.strip(*last));
        let has_size = |argument: &usize| {
            self.tree.inside(*argument).any(|inside| self.tree.nodes[inside].kind == CXCursor_UnaryExpr)
        };
        let bytes = self.tree.nodes[self.record.node].ty.bytes.max(1);
        if !OF_MEMORY.contains(&name) {
            let is_number = |argument: &usize| {
                let node = &self.tree.nodes[self.strip(*argument)];
                node.value.is_some_and(|value| value >= bytes) || has_size(argument)
            };
            let is_foreign = node.refers_to_system
                && matches!(name, "fwrite" | "fread" | "write" | "read" | "memcmp" | "send" | "recv");
            let whole = is_foreign || arguments.iter().any(is_number);
            return whole.then(|| Reason::new(format!("{} gets it as bytes", node.name), FOLLOW_BYTES));
        }
        if matches!(name, "memcpy" | "memmove" | "mempcpy") {
            let is_void = |argument: &&usize| {
                let inner = &self.tree.nodes[self.strip(**argument)];
                inner.ty.is_void && inner.ty.pointers == 1
            };
            let known = ours
                + arguments.iter().take(2).filter(|argument| !is_bytes(argument)).filter(is_void).count();
            if known < 2 {
                let why = format!("{} copies it to or from another type", node.name);
                return Some(Reason::new(why, FOLLOW_BYTES));
            }
        }
        if matches!(name, "memset" | "memcpy" | "memmove" | "mempcpy" | "bzero" | "explicit_bzero") {
            let size = size?;
            let whole = match self.tree.nodes[size].value {
                Some(value) => value % bytes == 0 && (has_size(&size) || !self.change.resizes),
                None => has_size(&size),
            };
            let task = "access the members that are meant by their names";
            return (!whole).then(|| Reason::new(format!("{} may access a part of it", node.name), task));
        }
        None
    }

    /// A size that is used for something else than memory.
    fn size(&self, at: usize) -> Option<Reason> {
        let names = |inside: usize| {
            let node = &self.tree.nodes[inside];
            let refers =
                node.kind == CXCursor_TypeRef && node.refers.is_some_and(|spot| self.holders.contains(&spot));
            refers || (inside != at && self.holds(node))
        };
        let child = self.tree.children(at).next();
        let is_its = child.is_some_and(|child| names(child) || names(self.strip(child)));
        if !is_its {
            return None;
        }
        let is_of_memory = |up: usize| {
            let node = &self.tree.nodes[up];
            let name = node.name.trim_start_matches("__builtin_");
            let divides = node.operator == CXBinaryOperator_Div && node.kind == CXCursor_BinaryOperator;
            divides || (node.kind == CXCursor_CallExpr && OF_MEMORY.contains(&name))
        };
        let is_harmless = self.tree.around(at).any(is_of_memory);
        let task = "see that what has the size may get another one";
        (!is_harmless).then(|| Reason::new("its size is used, which changes", task))
    }
}

/// A pointer to a member, which may be used for others.
fn pointer(why: String) -> Reason {
    Reason::new(why, FOLLOW_POINTER)
}
