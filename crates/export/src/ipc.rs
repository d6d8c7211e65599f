//! The Arrow IPC streaming format: a schema, dictionaries, record batches.
//!
//! ```text
//! message   0xFFFFFFFF  length of metadata  metadata (flatbuffers, padded to 8)  body: buffers, each padded to 64
//! stream    schema  (dictionary | record batch)*  0xFFFFFFFF 0
//! ```
//! A dictionary is sent when a batch first refers to it, and again, whole, when it has grown: readers that know no deltas can
//! replace it. <https://arrow.apache.org/docs/format/Columnar.html>

use std::io::{self, Write};
use std::sync::Arc;

use polars_arrow_format::ipc;

use crate::table::{ArrowTable, BatchColumn, ColumnType, Field, Strings};

/// Buffers begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Metadata begin and end at multiples of this.
const METADATA: usize = 8;

/// Says that a message follows.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Writes record batches to a stream.
pub struct StreamWriter<W> {
    out: W,
    /// Indexed by column: the dictionary that readers have.
    sent: Vec<Option<Arc<Strings>>>,
    builder: ipc::planus::Builder,
}

impl<W: Write> StreamWriter<W> {
    /// Writes the schema.
    pub fn new(out: W, schema: &[Field]) -> io::Result<StreamWriter<W>> {
        let fields = schema.iter().zip(0..).map(|(field, id)| self::field(field, id)).collect();
        let schema_message = ipc::MessageHeader::Schema(Box::new(ipc::Schema {
            endianness: ipc::Endianness::Little,
            fields: Some(fields),
            custom_metadata: None,
            features: None,
        }));
        let mut writer =
            StreamWriter { out, sent: vec![None; schema.len()], builder: ipc::planus::Builder::new() };
        writer.message(schema_message, &[])?;
        Ok(writer)
    }

    /// Writes a batch, and the dictionaries that are new.
    pub fn write(&mut self, table: &ArrowTable) -> io::Result<()> {
        for (id, column) in table.columns.iter().enumerate() {
            let Some(strings) = column.values.strings() else { continue };
            if self.sent[id].as_ref().is_none_or(|sent| !Arc::ptr_eq(sent, strings)) {
                self.dictionary(id as i64, strings)?;
                self.sent[id] = Some(strings.clone());
            }
        }
        let empty: &[u8] = &[];
        let nulls = |column: &BatchColumn| column.validity.as_ref().map_or(0, |validity| validity.nulls);
        let nodes = table.columns.iter().map(|column| node(table.rows, nulls(column))).collect();
        let buffers: Vec<&[u8]> = table
            .columns
            .iter()
            .flat_map(|column| {
                let bits = column.validity.as_ref().map_or(empty, |validity| &validity.bits);
                [bits, column.values.bytes()]
            })
            .collect();
        let batch = batch(table.rows, nodes, &buffers);
        self.message(ipc::MessageHeader::RecordBatch(Box::new(batch)), &buffers)
    }

    /// Writes the end, and gives back what it wrote to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&CONTINUATION)?;
        self.out.write_all(&[0; 4])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn dictionary(&mut self, id: i64, strings: &Strings) -> io::Result<()> {
        let buffers = [&[], bytemuck::cast_slice(strings.offsets()), strings.bytes()];
        let data = batch(strings.len(), vec![node(strings.len(), 0)], &buffers);
        let dictionary = ipc::DictionaryBatch { id, data: Some(Box::new(data)), is_delta: false };
        self.message(ipc::MessageHeader::DictionaryBatch(Box::new(dictionary)), &buffers)
    }

    fn message(&mut self, header: ipc::MessageHeader, buffers: &[&[u8]]) -> io::Result<()> {
        let message = ipc::Message {
            version: ipc::MetadataVersion::V5,
            header: Some(header),
            body_length: buffers.iter().map(|buffer| padded(buffer.len(), ALIGNMENT) as i64).sum(),
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
        Ok(())
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
    let (type_, dictionary) = match field.ty {
        ColumnType::U64 => (ipc::Type::Int(Box::new(int(64, false))), None),
        ColumnType::U32 => (ipc::Type::Int(Box::new(int(32, false))), None),
        ColumnType::Bool => (ipc::Type::Bool(Box::new(ipc::Bool {})), None),
        ColumnType::Keys8 => keys(8),
        ColumnType::Keys32 => keys(32),
    };
    ipc::Field {
        name: Some(field.name.clone()),
        nullable: field.nullable,
        type_: Some(type_),
        dictionary,
        children: Some(Vec::new()),
        custom_metadata: None,
    }
}
