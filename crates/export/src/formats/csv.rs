//! Tables as comma-separated values, by RFC 4180.
//!
//! The first line names the columns. A missing value is an empty field, and so is an empty text. A
//! list is a field with its items separated by ` | `. Numbers have all their digits; shares are
//! fractions of 1.

use std::io::{self, Write};

use crate::columns::ExportedTable;
use crate::table::{BatchColumn, ColumnValues};

/// Separates the items of a list.
const BETWEEN: &str = " | ";

/// Writes a table.
pub fn write(out: impl Write, table: &ExportedTable) -> io::Result<()> {
    let mut writer = ::csv::Writer::from_writer(out);
    writer.write_record(table.fields.iter().map(|field| &field.name[..]))?;
    let mut fields: Vec<String> = vec![String::new(); table.fields.len()];
    for row in 0..table.table.rows {
        for (field, column) in fields.iter_mut().zip(&table.table.columns) {
            field.clear();
            put(field, column, row);
        }
        writer.write_record(&fields)?;
    }
    writer.flush()
}

/// Adds the value of a row.
fn put(field: &mut String, column: &BatchColumn, row: usize) {
    let is_set = |bits: &[u8]| bits[row / 8] >> (row % 8) & 1 != 0;
    if column.validity.as_ref().is_some_and(|validity| !is_set(&validity.bits)) {
        return;
    }
    match &column.values {
        ColumnValues::U64(values) => field.push_str(itoa::Buffer::new().format(values[row])),
        ColumnValues::U32(values) => field.push_str(itoa::Buffer::new().format(values[row])),
        ColumnValues::I64(values) => field.push_str(itoa::Buffer::new().format(values[row])),
        ColumnValues::F64(values) => *field += &values[row].to_string(),
        ColumnValues::Bits(bits) => field.push_str(if is_set(bits) { "true" } else { "false" }),
        ColumnValues::Keys8(keys, strings) => field.push_str(strings.get(keys[row].into())),
        ColumnValues::Keys32(keys, strings) => field.push_str(strings.get(keys[row])),
        ColumnValues::TextLists(offsets, strings) => {
            let items = offsets[row]..offsets[row + 1];
            *field += &items.map(|item| strings.get(item)).collect::<Vec<_>>().join(BETWEEN);
        }
        ColumnValues::U64Lists(offsets, values) => {
            let items = &values[offsets[row] as usize..offsets[row + 1] as usize];
            *field += &items.iter().map(u64::to_string).collect::<Vec<_>>().join(BETWEEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    #[test]
    fn every_kind_of_value_is_one_field() {
        let mut columns = Columns::new(2);
        columns.u64("plain", [u64::MAX, 0].into_iter());
        columns.maybe_i64("step", [Some(-3), None].into_iter());
        columns.f64("share", [0.1, 2.0].into_iter());
        columns.bool("is", [true, false].into_iter());
        columns.maybe_text("name", [Some("a,\"b\"\nc;\0\u{fffd}"), None].into_iter());
        columns.texts("members", [vec!["x", "y"], Vec::new()].into_iter());
        columns.u64s("counts", [Vec::new(), vec![7, 8]].into_iter());
        let mut out = Vec::new();
        write(&mut out, &columns.named("odd")).unwrap();
        let expected = "plain,step,share,is,name,members,counts\n\
            18446744073709551615,-3,0.1,true,\"a,\"\"b\"\"\nc;\0\u{fffd}\",x | y,\n0,,2,false,,,7 | 8\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
