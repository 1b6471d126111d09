//! Pieces of text that several reports have.

use restante_engine::Violation;
use restante_sim::capsule::sentence_of;

/// Rows as aligned columns, two spaces apart; columns whose number is in `right` are aligned to the right.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| match right.contains(&column) {
            true => format!("{cell:>0$}", widths[column]),
            false => format!("{cell:<0$}", widths[column]),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Words with commas between, broken into lines of at most about 100 characters, indented by two.
pub(crate) fn list_of(words: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (index, word) in words.iter().enumerate() {
        if index == 0 {
            text.push_str("  ");
        } else if width + word.chars().count() > 98 {
            text.push_str(",\n  ");
            width = 0;
        } else {
            text.push_str(", ");
        }
        text.push_str(word);
        width += word.chars().count() + 2;
    }
    text.push('\n');
    text
}

/// The violation, what it breaks, who took part, and when.
pub(crate) fn found_text(violation: &Violation) -> String {
    format!(
        "violated     {}\n             {}\nfingerprint  {}\nnoticed at   {} s\n",
        violation.property,
        sentence_of(violation.property),
        violation.fingerprint(),
        violation.at.to_string().trim_start(),
    )
}

/// The word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::{list_of, quoted, table};

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "runs", "why"]), row(["a-long-name", "7", ""]), row(["ü", "1000", "x"])];
        assert_eq!(table(&rows, &[1]), "name         runs  why\na-long-name     7\nü            1000  x\n");
    }

    #[test]
    fn lists_are_broken() {
        let words: Vec<String> = (0..30).map(|n| format!("word-{n}")).collect();
        let text = list_of(&words);
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.len() <= 104 && line.starts_with("  word")), "{text}");
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("out/a-1.json"), "out/a-1.json");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
