//! Initialisers that depend on the order of members.

use clang_sys::*;

use crate::by_hand::Reason;
use crate::clang::Node;
use crate::forbidden::Uses;

/// Why an initialiser in braces depends on the order of the structure's members.
pub fn why(uses: &Uses, at: usize) -> Option<Reason> {
    let tree = uses.tree;
    let node = &tree.nodes[at];
    let is_reference =
        |child: &usize| matches!(tree.nodes[*child].kind, CXCursor_TypeRef | CXCursor_NamespaceRef);
    let children: Vec<usize> = tree.children(at).filter(|child| !is_reference(child)).collect();
    let record = node.ty.record.filter(|_| uses.holds(node))?;
    let is_zero = |child: &usize| {
        let inner = uses.strip(*child);
        tree.nodes[inner].value == Some(0)
            || (tree.nodes[inner].kind == CXCursor_InitListExpr && tree.children(inner).next().is_none())
    };
    if children.is_empty()
        || (children.len() == 1 && is_zero(&children[0]) && node.kind == CXCursor_InitListExpr)
    {
        return None;
    }
    let task = "name the members there, as in `.member = value`, or write the values in the new order";
    let positional = Some(Reason::new("its members are initialised by their position", task));
    let is_designated = |child: &usize| matches!(uses.first_byte(*child), Some(b'.' | b'['));
    let is_record = |child: &usize| {
        let inner = &tree.nodes[uses.strip(*child)];
        inner.ty.record.is_some()
            && inner.ty.pointers == 0
            && !inner.ty.is_array
            && inner.kind != CXCursor_InitListExpr
    };
    let is_braced = |child: &usize| tree.nodes[uses.strip(*child)].kind == CXCursor_InitListExpr;
    if node.kind != CXCursor_InitListExpr {
        return positional;
    }
    if record == uses.record.spot && !node.ty.is_array {
        let is_copy = children.len() == 1 && tree.nodes[uses.strip(children[0])].ty.record == Some(record);
        if !is_copy && !children.iter().all(is_designated) {
            return positional;
        }
        let acts = |child: &usize| {
            tree.inside(*child)
                .any(|inside| writes(&tree.nodes[inside]) || tree.nodes[inside].kind == CXCursor_CallExpr)
        };
        let acts = children.iter().filter(|child| acts(child)).count();
        let why = "its members are initialised by expressions that act, in their order";
        return (acts > 0 && children.len() > 1)
            .then(|| Reason::new(why, "evaluate the expressions before, in their order"));
    }
    if node.ty.is_array {
        let all = children.iter().all(|child| is_braced(child) || is_designated(child) || is_record(child));
        return if all { None } else { positional };
    }
    // A structure that holds it: braces that are left out would be filled by position.
    let holder = tree.nodes.iter().position(|other| {
        other.spot == Some(record)
            && matches!(other.kind, CXCursor_StructDecl | CXCursor_ClassDecl | CXCursor_UnionDecl)
            && other.ty.record == Some(record)
    })?;
    let fields: Vec<usize> =
        tree.children(holder).filter(|field| tree.nodes[*field].kind == CXCursor_FieldDecl).collect();
    if children.iter().all(is_designated) {
        return None;
    }
    let is_plain = |(nth, child): (usize, &usize)| {
        let field = fields.get(nth).map(|field| &tree.nodes[*field]);
        let takes = field.is_some_and(|field| !uses.holds(field));
        !is_designated(child) && field.is_some() && (takes || is_braced(child) || is_record(child))
    };
    if children.iter().enumerate().all(is_plain) { None } else { positional }
}

/// Returns whether an expression changes something.
pub fn writes(node: &Node) -> bool {
    let assigns = CXBinaryOperator_Assign..=CXBinaryOperator_OrAssign;
    let steps = CXUnaryOperator_PostInc..=CXUnaryOperator_PreDec;
    match node.kind {
        CXCursor_CompoundAssignOperator | CXCursor_StmtExpr => true,
        CXCursor_BinaryOperator => assigns.contains(&node.operator),
        CXCursor_UnaryOperator => steps.contains(&node.operator),
        _ => false,
    }
}
