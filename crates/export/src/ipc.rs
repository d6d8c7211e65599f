//! The Arrow IPC formats, stream and file: a schema, dictionaries, record batches.
//!
//! ```text
//! message   0xFFFFFFFF  length of metadata  metadata (flatbuffers, padded to 8)  body: buffers, each padded to 64
//! stream    schema  (dictionary | record batch)*  0xFFFFFFFF 0
//! file      "ARROW1" 0 0  stream  footer: schema, where the messages are  length of footer  "ARROW1"
//! ```
//! A dictionary is sent when a batch first refers to it, and again, whole, when it has grown:
//! readers that know no deltas can replace it. <https://arrow.apache.org/docs/format/Columnar.html>

use std::io::{self, Write};
use std::sync::Arc;

use polars_arrow_format::ipc;

use crate::table::{ArrowTable, BatchColumn, ColumnType, Field, ListItems, Strings};

/// Buffers begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Metadata begin and end at multiples of this.
const METADATA: usize = 8;

/// Marks the beginning of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The beginning and the end of a file.
const MAGIC: &[u8; 6] = b"ARROW1";

/// Writes record batches to a stream.
pub struct StreamWriter<W> {
    out: W,
    /// Bytes written so far.
    at: u64,
    /// Indexed by column: the dictionary that readers have.
    sent: Vec<Option<Arc<Strings>>>,
    builder: ipc::planus::Builder,
}

/// Writes a table as a file, which readers can map into memory and need not read from its beginning.
pub fn write_file(mut out: impl Write, schema: &[Field], table: &ArrowTable) -> io::Result<()> {
    out.write_all(MAGIC)?;
    out.write_all(&[0; 2])?;
    let mut writer = StreamWriter::new(out, schema)?;
    // The magic and its padding lie in front.
    writer.at += 8;
    let dictionaries = writer.dictionaries(table)?;
    let batches = vec![writer.batch(table)?];
    let footer = ipc::Footer {
        version: ipc::MetadataVersion::V5,
        schema: Some(Box::new(schema_of(schema))),
        dictionaries: Some(dictionaries),
        record_batches: Some(batches),
        custom_metadata: None,
    };
    writer.builder.clear();
    let footer = writer.builder.finish(&footer, None).to_vec();
    let mut out = writer.finish()?;
    out.write_all(&footer)?;
    out.write_all(&(footer.len() as u32).to_le_bytes())?;
    out.write_all(MAGIC)?;
    out.flush()
}

impl<W: Write> StreamWriter<W> {
    /// Writes the schema.
    pub fn new(out: W, schema: &[Field]) -> io::Result<StreamWriter<W>> {
        let builder = ipc::planus::Builder::new();
        let mut writer = StreamWriter { out, at: 0, sent: vec![None; schema.len()], builder };
        writer.message(ipc::MessageHeader::Schema(Box::new(schema_of(schema))), &[])?;
        Ok(writer)
    }

    /// Writes a batch, and the dictionaries that are new.
    pub fn write(&mut self, table: &ArrowTable) -> io::Result<()> {
        self.dictionaries(table)?;
        self.batch(table)?;
        Ok(())
    }

    /// Writes the dictionaries that readers do not have yet.
    fn dictionaries(&mut self, table: &ArrowTable) -> io::Result<Vec<ipc::Block>> {
        let mut blocks = Vec::new();
        for (id, column) in table.columns.iter().enumerate() {
            let Some(strings) = column.values.strings() else { continue };
            if self.sent[id].as_ref().is_none_or(|sent| !Arc::ptr_eq(sent, strings)) {
                blocks.push(self.dictionary(id as i64, strings)?);
                self.sent[id] = Some(strings.clone());
            }
        }
        Ok(blocks)
    }

    fn batch(&mut self, table: &ArrowTable) -> io::Result<ipc::Block> {
        let (mut nodes, mut buffers) = (Vec::new(), Vec::new());
        table.columns.iter().for_each(|column| lay_out(column, table.rows, &mut nodes, &mut buffers));
        let batch = batch(table.rows, nodes, &buffers);
        self.message(ipc::MessageHeader::RecordBatch(Box::new(batch)), &buffers)
    }

    /// Writes the end, and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&CONTINUATION)?;
        self.out.write_all(&[0; 4])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn dictionary(&mut self, id: i64, strings: &Strings) -> io::Result<ipc::Block> {
        let buffers = [&[], bytemuck::cast_slice(strings.offsets()), strings.bytes()];
        let data = batch(strings.len(), vec![node(strings.len(), 0)], &buffers);
        let dictionary = ipc::DictionaryBatch { id, data: Some(Box::new(data)), is_delta: false };
        self.message(ipc::MessageHeader::DictionaryBatch(Box::new(dictionary)), &buffers)
    }

    /// Writes a message; returns where it is.
    fn message(&mut self, header: ipc::MessageHeader, buffers: &[&[u8]]) -> io::Result<ipc::Block> {
        let body_length = buffers.iter().map(|buffer| padded(buffer.len(), ALIGNMENT) as i64).sum();
        let message = ipc::Message {
            version: ipc::MetadataVersion::V5,
            header: Some(header),
            body_length,
            custom_metadata: None,
        };
        self.builder.clear();
        let metadata = self.builder.finish(&message, None);
        let length = padded(metadata.len(), METADATA);
        self.out.write_all(&CONTINUATION)?;
        self.out.write_all(&(length as u32).to_le_bytes())?;
        self.out.write_all(metadata)?;
        self.out.write_all(&[0; METADATA][..length - metadata.len()])?;
        for buffer in buffers {
            self.out.write_all(buffer)?;
            self.out.write_all(&[0; ALIGNMENT][..padded(buffer.len(), ALIGNMENT) - buffer.len()])?;
        }
        let in_front = CONTINUATION.len() + size_of::<u32>() + length;
        let block = ipc::Block { offset: self.at as i64, meta_data_length: in_front as i32, body_length };
        self.at += (in_front as i64 + body_length) as u64;
        Ok(block)
    }
}

fn padded(bytes: usize, to: usize) -> usize {
    bytes.next_multiple_of(to)
}

fn node(rows: usize, nulls: usize) -> ipc::FieldNode {
    ipc::FieldNode { length: rows as i64, null_count: nulls as i64 }
}

fn batch(rows: usize, nodes: Vec<ipc::FieldNode>, buffers: &[&[u8]]) -> ipc::RecordBatch {
    let mut offset = 0;
    let place = |buffer: &&[u8]| {
        let place = ipc::Buffer { offset, length: buffer.len() as i64 };
        offset += padded(buffer.len(), ALIGNMENT) as i64;
        place
    };
    ipc::RecordBatch {
        length: rows as i64,
        nodes: Some(nodes),
        buffers: Some(buffers.iter().map(place).collect()),
        compression: None,
        variadic_buffer_counts: None,
    }
}

/// Adds a column's nodes and buffers; for a list, those of its items follow.
fn lay_out<'t>(
    column: &'t BatchColumn,
    rows: usize,
    nodes: &mut Vec<ipc::FieldNode>,
    buffers: &mut Vec<&'t [u8]>,
) {
    let validity = column.validity.as_ref();
    nodes.push(node(rows, validity.map_or(0, |validity| validity.nulls)));
    buffers.extend([validity.map_or(&[][..], |validity| &validity.bits), column.values.bytes()]);
    match column.values.items() {
        None => {}
        Some(ListItems::Texts(texts)) => {
            nodes.push(node(texts.len(), 0));
            buffers.extend([&[], bytemuck::cast_slice(texts.offsets()), texts.bytes()]);
        }
        Some(ListItems::U64(numbers)) => {
            nodes.push(node(numbers.len(), 0));
            buffers.extend([&[], bytemuck::cast_slice(numbers)]);
        }
    }
}

fn schema_of(fields: &[Field]) -> ipc::Schema {
    ipc::Schema {
        endianness: ipc::Endianness::Little,
        fields: Some(fields.iter().zip(0..).map(|(field, id)| self::field(field, id)).collect()),
        custom_metadata: None,
        features: None,
    }
}

/// A field; the id of its dictionary is its number.
fn field(field: &Field, id: i64) -> ipc::Field {
    let int = |bit_width, is_signed| ipc::Int { bit_width, is_signed };
    let keys = |bit_width| {
        let text = ipc::Type::Utf8(Box::new(ipc::Utf8 {}));
        let dictionary = ipc::DictionaryEncoding {
            id,
            index_type: Some(Box::new(int(bit_width, true))),
            is_ordered: false,
            dictionary_kind: ipc::DictionaryKind::DenseArray,
        };
        (text, Some(Box::new(dictionary)))
    };
    let mut children = Vec::new();
    let mut list_of = |type_| {
        children.push(plain("item", type_));
        (ipc::Type::List(Box::new(ipc::List {})), None)
    };
    let (type_, dictionary) = match field.ty {
        ColumnType::U64 => (ipc::Type::Int(Box::new(int(64, false))), None),
        ColumnType::U32 => (ipc::Type::Int(Box::new(int(32, false))), None),
        ColumnType::I64 => (ipc::Type::Int(Box::new(int(64, true))), None),
        ColumnType::F64 => {
            let double = ipc::FloatingPoint { precision: ipc::Precision::Double };
            (ipc::Type::FloatingPoint(Box::new(double)), None)
        }
        ColumnType::Bool => (ipc::Type::Bool(Box::new(ipc::Bool {})), None),
        ColumnType::Keys8 => keys(8),
        ColumnType::Keys32 => keys(32),
        ColumnType::TextLists => list_of(ipc::Type::Utf8(Box::new(ipc::Utf8 {}))),
        ColumnType::U64Lists => list_of(ipc::Type::Int(Box::new(int(64, false)))),
    };
    let nullable = field.nullable;
    ipc::Field { nullable, dictionary, children: Some(children), ..plain(&field.name, type_) }
}

/// A field without missing values and without keys.
fn plain(name: &str, type_: ipc::Type) -> ipc::Field {
    ipc::Field {
        name: Some(name.to_string()),
        nullable: false,
        type_: Some(type_),
        dictionary: None,
        children: Some(Vec::new()),
        custom_metadata: None,
    }
}
