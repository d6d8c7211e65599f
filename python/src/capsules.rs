//! Record batches through the Arrow C data and stream interfaces, in Python's capsules.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>: a structure is
//! owned by its capsule until a consumer moves it out, which sets its `release` to null. Nothing is
//! copied: the consumer of an array keeps its batch alive.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use memlode_export::{ArrowTable, ColumnType, Field, ListItems, Strings};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// `ARROW_FLAG_NULLABLE`
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`
#[repr(C)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: what they point to is owned by them alone, or shared by `Arc` and never changed.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: what it points to is a `StreamState`, whose batches are `Send`.
unsafe impl Send for ArrowArrayStream {}

/// Memory that a schema's pointers point to.
struct SchemaParts {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

impl ArrowSchema {
    fn new(
        format: &str,
        name: &str,
        flags: i64,
        children: Vec<ArrowSchema>,
        dictionary: Option<ArrowSchema>,
    ) -> ArrowSchema {
        // Names of levels come from a file; a name cannot hold a NUL here.
        let text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
        let mut parts = Box::new(SchemaParts {
            format: text(format),
            name: text(name),
            children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            dictionary: dictionary.map_or(ptr::null_mut(), |values| Box::into_raw(Box::new(values))),
        });
        ArrowSchema {
            format: parts.format.as_ptr(),
            name: parts.name.as_ptr(),
            metadata: ptr::null(),
            flags,
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: parts.dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// Makes the schema of record batches with these fields.
    pub fn of(fields: &[Field]) -> ArrowSchema {
        let field = |field: &Field| {
            let (format, text, items) = match field.ty {
                ColumnType::U64 => ("L", None, None),
                ColumnType::U32 => ("I", None, None),
                ColumnType::I64 => ("l", None, None),
                ColumnType::F64 => ("g", None, None),
                ColumnType::Bool => ("b", None, None),
                ColumnType::Keys8 => ("c", Some("u"), None),
                ColumnType::Keys32 => ("i", Some("u"), None),
                ColumnType::TextLists => ("+l", None, Some("u")),
                ColumnType::U64Lists => ("+l", None, Some("L")),
            };
            let values = text.map(|text| ArrowSchema::new(text, "", NULLABLE, Vec::new(), None));
            let items = items.map(|item| ArrowSchema::new(item, "item", 0, Vec::new(), None));
            let flags = if field.nullable { NULLABLE } else { 0 };
            ArrowSchema::new(format, &field.name, flags, items.into_iter().collect(), values)
        };
        ArrowSchema::new("+s", "", 0, fields.iter().map(field).collect(), None)
    }
}

/// `release` of schemas.
///
/// # Safety
/// `schema` points to a schema of [`ArrowSchema::new`] that has not been released.
unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: by the contract, it is there, and its private data are the parts that `new` made.
    let (schema, parts) =
        unsafe { (&mut *schema, Box::from_raw((*schema).private_data.cast::<SchemaParts>())) };
    schema.release = None;
    for part in parts.children.iter().copied().chain([parts.dictionary]).filter(|part| !part.is_null()) {
        // SAFETY: `new` made it of a box. Its drop releases it, unless it was moved out.
        drop(unsafe { Box::from_raw(part) });
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it has not been released, or moved out, else this were null.
            unsafe { release(self) }
        }
    }
}

/// Memory that an array's pointers point to.
struct ArrayParts {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    /// The owner of the buffers.
    _owner: Owner,
}

#[derive(Clone)]
enum Owner {
    Table { _table: Arc<ArrowTable> },
    Strings { _strings: Arc<Strings> },
}

impl ArrowArray {
    fn new(
        (length, null_count): (usize, usize),
        buffers: Vec<*const c_void>,
        children: Vec<ArrowArray>,
        dictionary: Option<ArrowArray>,
        owner: Owner,
    ) -> ArrowArray {
        let mut parts = Box::new(ArrayParts {
            buffers,
            children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            dictionary: dictionary.map_or(ptr::null_mut(), |values| Box::into_raw(Box::new(values))),
            _owner: owner,
        });
        ArrowArray {
            length: length as i64,
            null_count: null_count as i64,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: parts.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// A batch as an array of structures.
    pub fn of(table: &Arc<ArrowTable>) -> ArrowArray {
        let owner = Owner::Table { _table: table.clone() };
        let column = |column: &memlode_export::BatchColumn| {
            let validity = column.validity.as_ref();
            let bits = validity.map_or(ptr::null(), |validity| validity.bits.as_ptr().cast());
            let buffers = vec![bits, column.values.bytes().as_ptr().cast()];
            let size = (table.rows, validity.map_or(0, |validity| validity.nulls));
            let items = column.values.items().map(|items| match items {
                ListItems::Texts(strings) => texts(strings),
                ListItems::U64(numbers) => {
                    let buffers = vec![ptr::null(), numbers.as_ptr().cast()];
                    ArrowArray::new((numbers.len(), 0), buffers, Vec::new(), None, owner.clone())
                }
            });
            let keys = column.values.strings().map(texts);
            ArrowArray::new(size, buffers, items.into_iter().collect(), keys, owner.clone())
        };
        let columns = table.columns.iter().map(column).collect();
        ArrowArray::new((table.rows, 0), vec![ptr::null()], columns, None, owner.clone())
    }

    /// Returns the array that marks the end of a stream.
    fn released() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

fn texts(strings: &Arc<Strings>) -> ArrowArray {
    let buffers = vec![ptr::null(), strings.offsets().as_ptr().cast(), strings.bytes().as_ptr().cast()];
    let owner = Owner::Strings { _strings: strings.clone() };
    ArrowArray::new((strings.len(), 0), buffers, Vec::new(), None, owner)
}

/// `release` of arrays.
///
/// # Safety
/// `array` points to an array of [`ArrowArray::new`] that has not been released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: by the contract, it is there, and its private data are the parts that `new` made.
    let (array, parts) = unsafe { (&mut *array, Box::from_raw((*array).private_data.cast::<ArrayParts>())) };
    array.release = None;
    for part in parts.children.iter().copied().chain([parts.dictionary]).filter(|part| !part.is_null()) {
        // SAFETY: `new` made it of a box. Its drop releases it, unless it was moved out.
        drop(unsafe { Box::from_raw(part) });
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it has not been released, or moved out, else this were null.
            unsafe { release(self) }
        }
    }
}

/// Batches one after the other; an error is a sentence.
pub type Batches = Box<dyn FnMut() -> Result<Option<Arc<ArrowTable>>, String> + Send>;

/// Memory that a stream's pointer points to.
struct StreamState {
    fields: Vec<Field>,
    batches: Batches,
    error: CString,
}

impl ArrowArrayStream {
    /// Makes the stream of batches with these fields.
    pub fn of(fields: Vec<Field>, batches: Batches) -> ArrowArrayStream {
        let state = Box::new(StreamState { fields, batches, error: CString::default() });
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(state).cast(),
        }
    }
}

/// # Safety
/// `stream` points to a stream of [`ArrowArrayStream::of`] that has not been released and is not in
/// use elsewhere.
unsafe fn state<'a>(stream: *mut ArrowArrayStream) -> &'a mut StreamState {
    // SAFETY: by the contract, its private data are what `of` made.
    unsafe { &mut *(*stream).private_data.cast::<StreamState>() }
}

/// # Safety
/// As [`state`]; `out` can be written to.
unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: by the contract.
    unsafe { out.write(ArrowSchema::of(&state(stream).fields)) };
    0
}

/// # Safety
/// As [`state`]; `out` can be written to.
unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    const EIO: c_int = 5;
    // SAFETY: by the contract.
    let state = unsafe { state(stream) };
    let array = match (state.batches)() {
        Ok(Some(table)) => ArrowArray::of(&table),
        Ok(None) => ArrowArray::released(),
        Err(sentence) => {
            state.error = CString::new(sentence.replace('\0', "")).unwrap_or_default();
            return EIO;
        }
    };
    // SAFETY: by the contract.
    unsafe { out.write(array) };
    0
}

/// # Safety
/// As [`state`].
unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: by the contract.
    unsafe { state(stream) }.error.as_ptr()
}

/// # Safety
/// As [`state`].
unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: by the contract, its private data are what `of` made of a box.
    unsafe {
        (*stream).release = None;
        drop(Box::from_raw((*stream).private_data.cast::<StreamState>()));
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it has not been released, or moved out, else this were null.
            unsafe { release(self) }
        }
    }
}

/// A schema's capsule.
pub fn schema_capsule<'py>(py: Python<'py>, fields: &[Field]) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowSchema::of(fields), c"arrow_schema")
}

/// A batch's capsule.
pub fn array_capsule<'py>(py: Python<'py>, table: &Arc<ArrowTable>) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArray::of(table), c"arrow_array")
}

/// A stream's capsule.
pub fn stream_capsule(
    py: Python<'_>,
    fields: Vec<Field>,
    batches: Batches,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArrayStream::of(fields, batches), c"arrow_array_stream")
}
