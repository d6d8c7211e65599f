//! The subject of a row's numbers.

use serde::{Deserialize, Serialize};

/// All accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Everything {}

/// A source position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Path as the compiler saw it.
    pub file: Option<String>,
    /// Line; `None` when unknown.
    pub line: Option<u32>,
    /// Function whose text holds the line, demangled.
    pub function: String,
    /// The same, mangled.
    pub linkage_name: String,
    /// True if the line is that of a neighbouring instruction, since most accesses there have none of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub borrowed: bool,
    /// True if the function only passes a block on: it returns memory of no type (`void *`), and does
    /// not access what is in the block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untyped: bool,
    /// The nearest line outside libraries that a library's line was inlined into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<Box<Position>>,
}

/// The data that accesses touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Type that holds the member, or of the object.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Member path, array indices as `[]`.
    pub member: Option<String>,
    /// Variable through which it is reached.
    pub variable: Option<String>,
}

/// Data and the line that touches it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The data.
    #[serde(flatten)]
    pub data: Data,
    /// The line.
    #[serde(flatten)]
    pub position: Position,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Type {
    /// Its name.
    #[serde(rename = "type")]
    pub name: String,
}

/// A class of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Their home.
    #[serde(flatten)]
    pub home: Home,
    /// Element type.
    pub element: Option<String>,
    /// True if the type is not from the allocation, but from more than half of the accesses to the
    /// objects.
    pub element_by_use: bool,
    /// Objects made.
    pub count: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// The home of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Home {
    /// Allocated outside instrumented code, or before the recorder was there.
    Unknown,
    /// Allocated by one call on one call path.
    Heap {
        /// The allocating call.
        allocated_at: Position,
        /// The lines that it was inlined into, the innermost first.
        inlined_through: Vec<Position>,
        /// Functions on the stack, the innermost first, demangled, without parameters; a library's functions in
        /// front of the program's are left out.
        path: Vec<String>,
        /// For each function of the path, the line that called the one before it, and the lines
        /// into which that was inlined; empty where it is unknown, and for the function that holds
        /// the allocating call.
        called_at: Vec<Vec<Position>>,
        /// True if these are all that were recorded of it; false if it was allocated while recording was off, when
        /// only the allocating function is known.
        path_complete: bool,
    },
    /// A global or static variable.
    Global {
        /// Its symbol, demangled.
        symbol: String,
        /// File name of the image.
        image: String,
    },
    /// On the stack.
    Stack {
        /// The function.
        function: String,
        /// The variable, where it is known.
        variable: Option<String>,
    },
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Demangled.
    pub function: String,
    /// Mangled.
    pub linkage_name: String,
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Index over the whole trace.
    pub thread: u32,
    /// Index of its process.
    pub process: u32,
    /// The kernel's id of the process.
    pub pid: u32,
    /// The kernel's id of the thread.
    pub tid: u32,
    /// The core whose caches it used.
    pub core: u32,
}
