//! Tables for people.

/// Rows under a head, each column as wide as its widest cell. What could move a terminal's cursor is spelled out.
pub(super) fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> =
        [head.map(str::to_owned)].into_iter().chain(rows).map(|row| row.map(|cell| plain(&cell))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Names and values, one a line.
pub(super) fn list(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {}\n", plain(value))).collect()
}

/// Where the next page begins, if there may be one.
pub(super) fn more(next_cursor: Option<&str>) -> String {
    next_cursor.map(|cursor| format!("there may be more: --cursor {cursor}\n")).unwrap_or_default()
}

/// What could move a terminal's cursor, or turn the order of what it shows around, is spelled out.
pub(super) fn plain(cell: &str) -> String {
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    cell.chars().flat_map(|c| if is_hidden(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_no_cell_moves_the_cursor() {
        let rows = vec![["1".to_owned(), "a\u{1b}[2Jb".to_owned()], ["long".to_owned(), String::new()]];
        assert_eq!(table(["id", "key"], rows), "id    key\n1     a\\u{1b}[2Jb\nlong\n");
        assert_eq!(plain("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(list(&[("a", "1".to_owned()), ("long", "2".to_owned())]), "a     1\nlong  2\n");
    }
}
