//! Names of data, lines and objects on a terminal.

use memlode_attribute::libraries::is_foreign_path;

use super::label::{Detail, Label, MOST_DETAIL};
use crate::model::{Access, Data, Function, Home, Object, Position, StackLine, Type};
use crate::names::short_name;
use crate::render::text::{brief, brief_member, printable};

/// `arc.state`, `table[]`, `int`, or another known name.
pub fn name(data: &Data) -> String {
    data_label(data, 0).whole()
}

/// `before.c:50 price_block`; for a library's line, `app.cpp:12 main (in stl_vector.h:1126)`: the line that the
/// reader can change comes first. A line that is borrowed from a neighbouring instruction has a `~`.
pub fn place(position: &Position) -> String {
    place_label(position, 0).whole()
}

/// The function of a line, without parameters.
fn function_of(position: &Position) -> String {
    brief(&short_name(&position.function, &position.linkage_name))
}

/// Returns where objects live and where they came from, in a line; heap objects by the call that allocates them.
pub fn object(object: &Object) -> String {
    object_label(object, 0).whole()
}

/// The same of their home alone.
pub fn home(home: &Home) -> String {
    home_label(home, 0).whole()
}

/// Returns the name of data. With more detail, parts of a library's type and pointers to the same member are
/// distinguished, and then types of a name.
pub fn data_label(data: &Data, detail: Detail) -> Label {
    let ty = data.ty.as_deref().map(|ty| if detail < MOST_DETAIL { brief(ty) } else { ty.to_string() });
    let label = Label::default();
    let member =
        data.member.as_deref().map(|path| if detail == 0 { brief_member(path) } else { path.to_string() });
    let label = match (&ty, &member, &data.variable) {
        (Some(ty), Some(member), _) => label.name(ty).name(&format!(".{member}")),
        (None, Some(member), Some(variable)) => return label.name(variable).name(&format!(".{member}")),
        (Some(ty), None, Some(variable)) => return label.name(variable).name(&format!(" ({ty})")),
        (None, None, Some(variable)) => return label.name(variable),
        (Some(ty), None, None) => label.name(ty),
        (None, Some(member), None) => label.name(member),
        (None, None, None) => label.fixed("(no name)"),
    };
    match &data.variable {
        Some(variable) if detail > 0 => label.name(&format!(" ({variable})")),
        _ => label,
    }
}

/// Returns where a line stands. With more detail, files have their directories, and functions their parameters.
pub fn place_label(position: &Position, detail: Detail) -> Label {
    if let Some(outer) = &position.inlined_into {
        return place_label(outer, detail).fixed(&format!(" (in {})", file_and_line(position, detail)));
    }
    let function = match detail {
        MOST_DETAIL => position.function.clone(),
        _ => function_of(position),
    };
    match file_and_line(position, detail) {
        place if place.is_empty() => Label::default().name(&function),
        place => Label::default().fixed(&place).beside(&function),
    }
}

/// Data and the line that touches it.
pub fn access_label(access: &Access, detail: Detail) -> Label {
    data_label(&access.data, detail).fixed(" ").then(place_label(&access.position, detail))
}

/// `before.c:50`, or `~before.c:50`.
pub fn file_and_line(position: &Position, detail: Detail) -> String {
    let Some(path) = position.file.as_deref() else { return String::new() };
    let file = if detail < MOST_DETAIL { path.rsplit('/').next().unwrap_or(path) } else { path };
    let borrowed = if position.borrowed { "~" } else { "" };
    let file = printable(file);
    position.line.map_or(format!("{borrowed}{file}"), |line| format!("{borrowed}{file}:{line}"))
}

/// Objects. With more detail, by their element type.
pub fn object_label(object: &Object, detail: Detail) -> Label {
    let label = home_label(&object.home, detail);
    match &object.element {
        Some(element) if detail > 0 => label.name(&format!(" of {}", brief(element))),
        _ => label,
    }
}

/// Returns where objects live.
pub fn home_label(home: &Home, detail: Detail) -> Label {
    let label = Label::default();
    match home {
        Home::Unknown => label.fixed("memory of unknown origin"),
        Home::Heap { allocated_at, path_complete, .. } => {
            let callers = heap_callers(home, detail);
            let outer = allocated_at.inlined_into.as_deref().unwrap_or(allocated_at);
            let label = match passed_on(outer, &callers).filter(|_| detail == 0) {
                Some(at) => {
                    let (first, rest) = (&callers[at], &callers[at + 1..]);
                    with_callers(first.label.clone(), first.is_foreign, rest, detail)
                }
                None => with_callers(place_label(allocated_at, detail), is_foreign(outer), &callers, detail),
            };
            if *path_complete { label } else { label.caller("(recording was off)") }
        }
        Home::Global { symbol, image } => {
            label.fixed("global ").name(&brief(symbol)).beside(&format!("of {image}"))
        }
        Home::Stack { function, variable } => {
            let label = label.fixed("stack of ").name(&brief(function));
            match variable {
                Some(variable) => label.fixed(": ").name(variable),
                None => label,
            }
        }
    }
}

/// The functions that [`home_label`] leaves out of a name, since they only pass blocks on; the innermost
/// first.
pub fn wrappers(home: &Home) -> Vec<String> {
    let Home::Heap { allocated_at, .. } = home else { return Vec::new() };
    let outer = allocated_at.inlined_into.as_deref().unwrap_or(allocated_at);
    let callers = heap_callers(home, 0);
    let Some(at) = passed_on(outer, &callers) else { return Vec::new() };
    let mut names = vec![function_of(outer)];
    names.extend(callers[..at].iter().filter_map(|caller| caller.wrapper.clone()));
    names.dedup();
    names
}

/// The callers of an allocating call, the innermost first.
fn heap_callers(home: &Home, detail: Detail) -> Vec<Caller> {
    let Home::Heap { allocated_at, inlined_through, path, called_at, .. } = home else { return Vec::new() };
    // The innermost function of the path is the one that the call was inlined into, if it was.
    let outer = allocated_at.inlined_into.as_deref().unwrap_or(allocated_at);
    let own = inlined_through.last().unwrap_or(outer);
    let own = short_name(&own.function, &own.linkage_name);
    let mut callers: Vec<Caller> = inlined_through.iter().map(|step| Caller::at(step, detail)).collect();
    // Directories tell allocating calls apart; of callers they would fill the line.
    let few = detail.min(MOST_DETAIL - 1);
    for (caller, lines) in path.iter().zip(called_at).skip_while(|(function, _)| **function == own) {
        match lines.is_empty() {
            true => callers.push(Caller::function(&brief(caller))),
            false => callers.extend(lines.iter().map(|line| Caller::at(line, few))),
        }
    }
    callers
}

/// Returns the lines of a call path, the innermost first.
pub fn stack_label(lines: &[StackLine], detail: Detail) -> Label {
    let Some((first, callers)) = lines.split_first() else { return Label::default().fixed("(not known)") };
    let few = detail.min(MOST_DETAIL - 1);
    let callers: Vec<Caller> = callers.iter().map(|line| Caller::of(&line.position, few)).collect();
    let label = match first.position.line {
        Some(_) => place_label(&first.position, detail),
        None => Label::default().name(&function_of(&first.position)),
    };
    with_callers(label, is_foreign(&first.position), &callers, detail)
}

/// One step of a call path.
struct Caller {
    label: Label,
    is_foreign: bool,
    /// The function, if it only passes blocks on.
    wrapper: Option<String>,
}

impl Caller {
    fn at(position: &Position, detail: Detail) -> Caller {
        let label = place_label(position, detail);
        let wrapper = position.untyped.then(|| function_of(position));
        Caller { label, is_foreign: is_foreign(position), wrapper }
    }

    fn function(name: &str) -> Caller {
        Caller { label: Label::default().name(name), is_foreign: false, wrapper: None }
    }

    /// A step whose line may be unknown; then its file is meaningless.
    fn of(position: &Position, detail: Detail) -> Caller {
        match position.line {
            Some(_) => Caller::at(position, detail),
            None => Caller::function(&function_of(position)),
        }
    }
}

/// Returns whether a line is of a library, or a package that Cargo fetched.
fn is_foreign(position: &Position) -> bool {
    position.file.as_deref().is_some_and(is_foreign_path)
}

/// Returns which caller is the first that does more with a block than to pass it on, if the line that
/// allocates it does not: it is there that the block becomes an object. Of those alone, the outermost.
fn passed_on(allocated_at: &Position, callers: &[Caller]) -> Option<usize> {
    let knows_it = callers.iter().position(|caller| caller.wrapper.is_none());
    knows_it.or(callers.len().checked_sub(1)).filter(|_| allocated_at.untyped)
}

/// Adds a call path. Lines outside the program, unless the label is one, are left out where they
/// distinguish no two rows: how a package makes its objects, and who calls `main`, is the same for
/// all.
fn with_callers(label: Label, label_is_foreign: bool, callers: &[Caller], detail: Detail) -> Label {
    let outermost = callers.iter().rposition(|caller| !caller.is_foreign).map(|at| at + 1);
    let own = outermost.or((!label_is_foreign).then_some(0)).filter(|_| detail == 0);
    let callers = own.map_or(callers, |own| &callers[..own]);
    let is_left_out = |caller: &Caller| own.is_some() && caller.is_foreign;
    callers.chunk_by(|one, next| is_left_out(one) && is_left_out(next)).fold(label, |label, run| {
        let caller = &run[0];
        match caller.is_foreign {
            true if is_left_out(caller) => label.foreign_caller("…"),
            true => label.foreign_caller(&caller.label.whole()),
            false => label.caller(&caller.label.whole()),
        }
    })
}

/// Types.
pub fn type_label(ty: &Type, detail: Detail) -> Label {
    Label::default().name(&if detail < MOST_DETAIL { brief(&ty.name) } else { ty.name.clone() })
}

/// Functions. With more detail, by their parameters, and then as the linker knows them.
pub fn function_label(function: &Function, detail: Detail) -> Label {
    Label::default().name(&match detail {
        0 => brief(&short_name(&function.function, &function.linkage_name)),
        1 => function.function.clone(),
        _ => function.linkage_name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_left_out_beside_the_programs_own_lines() {
        let position = |file: &str, line, function: &str| Position {
            file: Some(file.to_string()),
            line: Some(line),
            function: function.to_string(),
            linkage_name: function.to_string(),
            ..Position::default()
        };
        let package = |line, function| {
            position("/home/me/.cargo/registry/src/index-1/map-1.2.3/src/map.rs", line, function)
        };
        let library = position("/rustc/5980/library/core/src/ops/function.rs", 250, "call_once");
        let home = |allocated_at, outermost| Home::Heap {
            allocated_at,
            inlined_through: vec![package(2, "reserve")],
            path: ["reserve", "insert", "outermost", "call_once"].map(str::to_string).to_vec(),
            called_at: vec![vec![], vec![package(3, "insert")], vec![outermost], vec![library.clone()]],
            path_complete: true,
        };
        let own = home(package(1, "grow"), position("src/main.rs", 4, "outermost"));
        assert_eq!(home_label(&own, 0).whole(), "map.rs:1 grow ← … ← main.rs:4 outermost");
        let all = "map.rs:1 grow ← map.rs:2 reserve ← map.rs:3 insert ← main.rs:4 outermost ← function.rs:250 call_once";
        assert_eq!(home_label(&own, 1).whole(), all);
        let allocates = home(position("src/main.rs", 1, "grow"), package(4, "outermost"));
        assert_eq!(home_label(&allocates, 0).whole(), "main.rs:1 grow");
        // Of a package alone there is nothing else to tell.
        let package_alone = home(package(1, "grow"), package(4, "outermost"));
        assert_eq!(home_label(&package_alone, 0).whole(), all.replace("main", "map"));
    }

    #[test]
    fn blocks_are_named_where_they_become_objects() {
        let line = |line, function: &str, untyped| Position {
            file: Some("a.c".into()),
            line: Some(line),
            function: function.into(),
            linkage_name: function.into(),
            untyped,
            ..Position::default()
        };
        let home = |typed: [bool; 3]| Home::Heap {
            allocated_at: line(1, "get", !typed[0]),
            inlined_through: vec![line(2, "pool", !typed[1])],
            path: ["pool", "make", "main"].map(str::to_string).to_vec(),
            called_at: vec![vec![], vec![line(3, "make", !typed[2])], vec![line(4, "main", false)]],
            path_complete: true,
        };
        for (typed, name) in [
            ([true; 3], "a.c:1 get ← a.c:2 pool ← a.c:3 make ← a.c:4 main"),
            ([false, false, true], "a.c:3 make ← a.c:4 main"),
            ([false, true, false], "a.c:2 pool ← a.c:3 make ← a.c:4 main"),
            ([false; 3], "a.c:4 main"),
        ] {
            assert_eq!(home_label(&home(typed), 0).whole(), name, "{typed:?}");
            let left_out = typed.iter().take_while(|typed| !**typed).count();
            assert_eq!(wrappers(&home(typed)), ["get", "pool", "make"][..left_out]);
            assert!(home_label(&home(typed), 1).whole().starts_with("a.c:1 get ← a.c:2 pool ← a.c:3 make"));
        }
    }
}
