//! A translation unit as clang understands it: its cursors outside of system headers, as data.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::os::raw::c_char;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use clang_sys::*;

use crate::Unpatched;

/// Cursors of one unit, at most.
const MOST_NODES: usize = 20_000_000;

/// Bytes of stack for walking through deep expressions.
const STACK: usize = 1 << 28;

/// A place in a file of a unit: its index and a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Index into [`Tree::files`].
    pub file: usize,
    /// Bytes from the file's beginning.
    pub at: usize,
}

/// A type, as far as edits of a structure must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeShape {
    /// Pointers and references around the base.
    pub pointers: usize,
    /// True of an array.
    pub is_array: bool,
    /// The definition of the structure that it is made of.
    pub record: Option<Spot>,
    /// True if the base is `void`.
    pub is_void: bool,
    /// The canonical spelling.
    pub spelling: String,
    /// Size in bytes; negative if it has none.
    pub bytes: i64,
    /// Alignment in bytes.
    pub align: i64,
    /// True if creating and destroying a value does nothing.
    pub is_plain: bool,
}

/// A cursor.
#[derive(Clone, Debug)]
pub struct Node {
    /// Index of the cursor that it is part of; itself for the outermost.
    pub parent: usize,
    /// Clang's kind.
    pub kind: CXCursorKind,
    /// The name.
    pub name: String,
    /// The place of the name, where macros are expanded.
    pub spot: Option<Spot>,
    /// The bytes that it takes, where macros are expanded.
    pub extent: std::ops::Range<usize>,
    /// The line of its name.
    pub line: u32,
    /// True if its name comes from a macro.
    pub from_macro: bool,
    /// Its type.
    pub ty: TypeShape,
    /// The name that it refers to is declared here.
    pub refers: Option<Spot>,
    /// True if the declaration it refers to is in a system header, or built in.
    pub refers_to_system: bool,
    /// Offset in bits and width of a bit-field, or -1, of a member.
    pub member: Option<(i64, i32)>,
    /// Operator of an expression, clang's number.
    pub operator: i32,
    /// Its value, where it is a constant integer.
    pub value: Option<i64>,
}

/// A unit that was read.
pub struct Tree {
    /// Files outside of system headers.
    pub files: Vec<PathBuf>,
    /// Cursors, parents first.
    pub nodes: Vec<Node>,
    /// Errors, each with its place.
    pub errors: Vec<String>,
    /// Warnings, each without its place.
    pub warnings: Vec<String>,
}

/// The library, which is loaded when the first patch is made.
#[derive(Clone)]
pub struct Clang(Arc<SharedLibrary>);

impl Clang {
    /// Loads the newest libclang of the system.
    ///
    /// # Errors
    /// No libclang is installed.
    pub fn load() -> Result<Clang, Unpatched> {
        let why =
            |why| Unpatched::Sentence(format!("libclang, which reads the sources, cannot be loaded: {why}"));
        Ok(Clang(Arc::new(load_manually().map_err(why)?)))
    }

    /// Reads a unit; `overlays` are texts that stand in for files.
    ///
    /// # Errors
    /// Clang cannot read it at all.
    pub fn read(&self, words: &[String], overlays: &HashMap<PathBuf, String>) -> Result<Tree, Unpatched> {
        let read = || {
            set_library(Some(self.0.clone()));
            parse(words, overlays)
        };
        let cannot = |why: &str| {
            Unpatched::Sentence(format!("clang cannot read {}: {why}", words.last().map_or("", |word| word)))
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
            let thread = thread.map_err(|why| cannot(&why.to_string()))?;
            thread.join().unwrap_or(Err("it ended".to_string())).map_err(|why| cannot(&why))
        })
    }
}

/// The state of a walk.
struct Walk {
    tree: Tree,
    known: HashMap<usize, Option<usize>>,
    parent: usize,
}

fn parse(words: &[String], overlays: &HashMap<PathBuf, String>) -> Result<Tree, String> {
    let c = |text: &str| CString::new(text).map_err(|_| "a name holds a zero byte".to_string());
    let words = words.iter().map(|word| c(word)).collect::<Result<Vec<_>, _>>()?;
    let words: Vec<*const c_char> = words.iter().map(|word| word.as_ptr()).collect();
    let names = overlays.keys().map(|path| c(&path.to_string_lossy())).collect::<Result<Vec<_>, _>>()?;
    let mut unsaved: Vec<CXUnsavedFile> = Vec::new();
    for (name, text) in names.iter().zip(overlays.values()) {
        unsaved.push(CXUnsavedFile {
            Filename: name.as_ptr(),
            Contents: text.as_ptr().cast(),
            Length: text.len() as u64,
        });
    }
    let options = CXTranslationUnit_DetailedPreprocessingRecord | CXTranslationUnit_KeepGoing;
    // SAFETY: the strings outlive the unit, which is disposed of below; the callback gets a pointer to a `Walk` that nobody else uses.
    unsafe {
        let index = clang_createIndex(0, 0);
        let mut unit = ptr::null_mut();
        let code = clang_parseTranslationUnit2FullArgv(
            index,
            ptr::null(),
            words.as_ptr(),
            words.len() as i32,
            unsaved.as_mut_ptr(),
            unsaved.len() as u32,
            options,
            &mut unit,
        );
        if code != CXError_Success || unit.is_null() {
            clang_disposeIndex(index);
            return Err(format!("error {code}"));
        }
        let tree = Tree { files: Vec::new(), nodes: Vec::new(), errors: Vec::new(), warnings: Vec::new() };
        let mut walk = Walk { tree, known: HashMap::new(), parent: usize::MAX };
        for at in 0..clang_getNumDiagnostics(unit) {
            let diagnostic = clang_getDiagnostic(unit, at);
            let severity = clang_getDiagnosticSeverity(diagnostic);
            if severity >= CXDiagnostic_Error {
                let shown = clang_formatDiagnostic(diagnostic, CXDiagnostic_DisplaySourceLocation);
                walk.tree.errors.push(text(shown));
            } else {
                walk.tree.warnings.push(text(clang_getDiagnosticSpelling(diagnostic)));
            }
            clang_disposeDiagnostic(diagnostic);
        }
        let root = clang_getTranslationUnitCursor(unit);
        clang_visitChildren(root, visit, ptr::from_mut(&mut walk).cast::<c_void>());
        clang_disposeTranslationUnit(unit);
        clang_disposeIndex(index);
        match walk.tree.nodes.len() < MOST_NODES {
            true => Ok(walk.tree),
            false => Err("it is too large".to_string()),
        }
    }
}

extern "C" fn visit(cursor: CXCursor, parent: CXCursor, data: CXClientData) -> CXChildVisitResult {
    // SAFETY: the pointer that `parse` passed to libclang, which calls this on one thread and one level at a time.
    let walk = unsafe { &mut *data.cast::<Walk>() };
    // SAFETY: the cursor is one of the unit that is visited.
    unsafe {
        let is_outermost = walk.parent == usize::MAX;
        if is_outermost && clang_Location_isInSystemHeader(clang_getCursorLocation(cursor)) != 0 {
            return CXChildVisit_Continue;
        }
        // A definition inside of another declaration is visited a second time, as a part of that.
        let is_type = matches!(
            clang_getCursorKind(cursor),
            CXCursor_StructDecl | CXCursor_UnionDecl | CXCursor_EnumDecl
        );
        let declares = [CXCursor_TypedefDecl, CXCursor_VarDecl, CXCursor_FieldDecl, CXCursor_FunctionDecl];
        if is_type && declares.contains(&clang_getCursorKind(parent)) {
            return CXChildVisit_Continue;
        }
        if walk.tree.nodes.len() >= MOST_NODES {
            return CXChildVisit_Break;
        }
        let at = walk.tree.nodes.len();
        let parent = if is_outermost { at } else { walk.parent };
        let node = node(walk, cursor, parent);
        walk.tree.nodes.push(node);
        let outer = std::mem::replace(&mut walk.parent, at);
        clang_visitChildren(cursor, visit, data);
        (*data.cast::<Walk>()).parent = outer;
        CXChildVisit_Continue
    }
}

/// Copies a cursor.
///
/// # Safety
/// The cursor is one of a unit that is not disposed of.
unsafe fn node(walk: &mut Walk, cursor: CXCursor, parent: usize) -> Node {
    // SAFETY: as above.
    unsafe {
        let kind = clang_getCursorKind(cursor);
        let location = clang_getCursorLocation(cursor);
        let (spot, line) = place(walk, location);
        let (mut begin, mut line_of_name, mut offset) = (ptr::null_mut(), 0, 0);
        clang_getSpellingLocation(location, &mut begin, &mut line_of_name, ptr::null_mut(), &mut offset);
        let from_macro = spot.is_some_and(|spot| spot.at != offset as usize);
        let range = clang_getCursorExtent(cursor);
        let mut byte = |location| place(walk, location).0.map_or(0, |spot: Spot| spot.at);
        let extent = byte(clang_getRangeStart(range))..byte(clang_getRangeEnd(range));
        let refers = clang_getCursorReferenced(cursor);
        let is_reference = clang_Cursor_isNull(refers) == 0 && clang_equalCursors(refers, cursor) == 0;
        let declared = clang_getCursorLocation(refers);
        let is_expression = clang_isExpression(kind) != 0;
        let operator = match kind {
            CXCursor_UnaryOperator => clang_getCursorUnaryOperatorKind(cursor),
            CXCursor_BinaryOperator => clang_getCursorBinaryOperatorKind(cursor),
            _ => 0,
        };
        let member = (kind == CXCursor_FieldDecl)
            .then(|| (clang_Cursor_getOffsetOfField(cursor), clang_getFieldDeclBitWidth(cursor)));
        let refers_to_system = is_reference
            && (clang_Location_isInSystemHeader(declared) != 0 || place(walk, declared).0.is_none());
        Node {
            parent,
            kind,
            name: text(clang_getCursorSpelling(cursor)),
            spot,
            extent,
            line,
            from_macro,
            ty: shape(walk, clang_getCursorType(cursor)),
            refers: is_reference.then(|| place(walk, declared).0).flatten(),
            refers_to_system,
            member,
            operator,
            value: is_expression.then(|| value(cursor)).flatten(),
        }
    }
}

/// Returns the value of a constant.
///
/// # Safety
/// As of [`node`].
unsafe fn value(cursor: CXCursor) -> Option<i64> {
    // SAFETY: as above.
    unsafe {
        let kind = clang_getCursorKind(cursor);
        if !matches!(kind, CXCursor_IntegerLiteral | CXCursor_UnaryExpr | CXCursor_BinaryOperator) {
            return None;
        }
        let result = clang_Cursor_Evaluate(cursor);
        if result.is_null() {
            return None;
        }
        let is_integer = clang_EvalResult_getKind(result) == CXEval_Int;
        let value = is_integer.then(|| clang_EvalResult_getAsLongLong(result));
        clang_EvalResult_dispose(result);
        value
    }
}

/// Returns the file and byte of a location, where macros are expanded, and its line.
///
/// # Safety
/// As of [`node`].
unsafe fn place(walk: &mut Walk, location: CXSourceLocation) -> (Option<Spot>, u32) {
    let (mut file, mut line, mut at) = (ptr::null_mut(), 0, 0);
    // SAFETY: as above.
    unsafe { clang_getExpansionLocation(location, &mut file, &mut line, ptr::null_mut(), &mut at) };
    if file.is_null() {
        return (None, 0);
    }
    let found = walk.known.entry(file as usize).or_insert_with(|| {
        // SAFETY: the file is one of the unit.
        let name = text(unsafe { clang_getFileName(file) });
        walk.tree.files.push(PathBuf::from(name));
        Some(walk.tree.files.len() - 1)
    });
    (found.map(|file| Spot { file, at: at as usize }), line)
}

/// Copies a type.
///
/// # Safety
/// As of [`node`].
unsafe fn shape(walk: &mut Walk, ty: CXType) -> TypeShape {
    // SAFETY: as above.
    unsafe {
        let canonical = clang_getCanonicalType(ty);
        if canonical.kind == CXType_Invalid {
            return TypeShape::default();
        }
        let mut shape = TypeShape {
            spelling: text(clang_getTypeSpelling(canonical)),
            bytes: clang_Type_getSizeOf(canonical),
            align: clang_Type_getAlignOf(canonical),
            is_plain: clang_isPODType(canonical) != 0,
            ..TypeShape::default()
        };
        let mut base = canonical;
        loop {
            base = match base.kind {
                CXType_Pointer | CXType_LValueReference | CXType_RValueReference => {
                    shape.pointers += 1;
                    clang_getCanonicalType(clang_getPointeeType(base))
                }
                CXType_ConstantArray | CXType_IncompleteArray | CXType_VariableArray => {
                    shape.is_array |= shape.pointers == 0;
                    clang_getCanonicalType(clang_getArrayElementType(base))
                }
                _ => break,
            };
        }
        shape.is_void = base.kind == CXType_Void;
        if base.kind == CXType_Record {
            let declaration = clang_getTypeDeclaration(base);
            shape.record = place(walk, clang_getCursorLocation(declaration)).0;
        }
        shape
    }
}

/// Takes a string of libclang.
fn text(string: CXString) -> String {
    // SAFETY: the string is disposed of after it was copied; a null pointer is an empty string.
    unsafe {
        let data = clang_getCString(string);
        let copy = match data.is_null() {
            true => String::new(),
            false => CStr::from_ptr(data).to_string_lossy().into_owned(),
        };
        clang_disposeString(string);
        copy
    }
}

impl Tree {
    /// Cursors inside a cursor, itself first: nodes stand behind their parents, so they are one range.
    pub fn inside(&self, root: usize) -> std::ops::Range<usize> {
        let mut end = root + 1;
        while end < self.nodes.len() && self.nodes[end].parent >= root && self.nodes[end].parent != end {
            end += 1;
        }
        root..end
    }

    /// Children of a cursor.
    pub fn children(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        self.inside(of).skip(1).filter(move |at| self.nodes[*at].parent == of)
    }

    /// The cursors around one, the nearest first.
    pub fn around(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        let up = |at: &usize| Some(self.nodes[*at].parent).filter(|up| up != at);
        std::iter::successors(up(&of), up)
    }

    /// The place of a cursor, as people write it.
    pub fn place(&self, of: usize, directory: &Path) -> String {
        let node = &self.nodes[of];
        let file = node.spot.map_or(Path::new("?"), |spot| &self.files[spot.file]);
        let file = file.strip_prefix(directory).unwrap_or(file);
        format!("{}:{}", file.display().to_string().escape_debug(), node.line)
    }
}
