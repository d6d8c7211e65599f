//! Names of data, lines and objects on a terminal.

use super::label::{Detail, Label, MOST_DETAIL};
use crate::model::{Access, Data, Function, Home, Object, Position, Type};
use crate::names::demangle_short;
use crate::render::text::{brief, printable};

/// `arc.state`, `table[]`, `int`, or what else is known.
pub fn name(data: &Data) -> String {
    data_label(data, 0).whole()
}

/// `before.c:50 price_block`; for a library's line, `app.cpp:12 main (in stl_vector.h:1126)`: the line that the
/// reader can change comes first. A line that is borrowed from a neighbouring instruction has a `~`.
pub fn place(position: &Position) -> String {
    place_label(position, 0).whole()
}

/// Returns where objects live and where they came from, in a line; heap objects by the call that allocates them.
pub fn object(object: &Object) -> String {
    object_label(object, 0).whole()
}

/// The same of their home alone.
pub fn home(home: &Home) -> String {
    home_label(home, 0).whole()
}

/// Returns what data are called. With more detail, pointers to the same member are told apart, and then types of a name.
pub fn data_label(data: &Data, detail: Detail) -> Label {
    let ty = data.ty.as_deref().map(|ty| if detail < MOST_DETAIL { brief(ty) } else { ty.to_string() });
    let label = Label::default();
    let label = match (&ty, &data.member, &data.variable) {
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
        _ => brief(&demangle_short(&position.linkage_name)),
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
        Home::Heap { allocated_at, inlined_through, path, called_at, path_complete } => {
            let mut label = place_label(allocated_at, detail);
            for step in inlined_through {
                label = label.caller(&place_label(step, detail).whole());
            }
            // The innermost function of the path is the one that the call was inlined into, if it was.
            let outer = allocated_at.inlined_into.as_deref().unwrap_or(allocated_at);
            let own = inlined_through.last().unwrap_or(outer);
            let own = demangle_short(&own.linkage_name);
            // Directories tell allocating calls apart; of callers they would fill the line.
            let few = detail.min(MOST_DETAIL - 1);
            for (caller, lines) in path.iter().zip(called_at).skip_while(|(function, _)| **function == own) {
                label = match lines.is_empty() {
                    true => label.caller(&brief(caller)),
                    false => {
                        lines.iter().fold(label, |label, line| label.caller(&place_label(line, few).whole()))
                    }
                };
            }
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

/// Types.
pub fn type_label(ty: &Type, detail: Detail) -> Label {
    Label::default().name(&if detail < MOST_DETAIL { brief(&ty.name) } else { ty.name.clone() })
}

/// Functions. With more detail, by their parameters, and then as the linker knows them.
pub fn function_label(function: &Function, detail: Detail) -> Label {
    Label::default().name(&match detail {
        0 => brief(&demangle_short(&function.linkage_name)),
        1 => function.function.clone(),
        _ => function.linkage_name.clone(),
    })
}
