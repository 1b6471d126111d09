//! The vacuity report of a set of runs.

use restante_sim::campaign::{About, Counted, Row, Simulated, rows};
use serde::Serialize;

use super::{list_of, table};

/// Every row of the worlds that were run, and the names of those that are empty.
#[derive(Debug, Serialize)]
pub(crate) struct VacuityReport {
    rows: Vec<Row>,
    pub(crate) empty: Vec<&'static str>,
}

impl VacuityReport {
    pub(crate) fn new(worlds: impl Iterator<Item = Simulated>, counted: Counted<'_>) -> Self {
        let rows: Vec<Row> = worlds.flat_map(|world| rows(world, counted)).collect();
        let empty = rows.iter().filter(|row| row.is_empty()).map(|row| row.name).collect();
        Self { rows, empty }
    }

    /// The report for a person.
    pub(crate) fn text(&self, runs: u64) -> String {
        let header = ["kind", "name", "asked for", "happened"].map(str::to_owned).to_vec();
        let row = |row: &Row| {
            let (asked, happened) = match row.about {
                About::Fault { requested, delivered } => (requested.to_string(), delivered),
                About::Operation { reached } | About::State { reached } => (String::new(), reached),
                About::Property { judged } => (String::new(), judged),
            };
            vec![row.kind().to_owned(), row.name.to_owned(), asked, happened.to_string()]
        };
        let shown: Vec<_> = [header].into_iter().chain(self.rows.iter().map(row)).collect();
        let mut text = format!("vacuity report of {runs} runs\n\n");
        text += &table(&shown, &[2, 3]);
        text += "(happened: faults delivered; operations and states reached; properties judged where they could have been found violated)\n\n";
        match self.empty[..] {
            [] => text += &format!("no row of {} is empty\n", self.rows.len()),
            [..] => {
                let names: Vec<String> = self.empty.iter().map(|name| (*name).to_owned()).collect();
                text += &format!("empty, {} of {}:\n{}", names.len(), self.rows.len(), list_of(&names));
            }
        }
        text
    }
}
