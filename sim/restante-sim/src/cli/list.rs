//! `list`: what there is.

use restante_engine::Property;
use restante_sim::campaign::Verdict;
use restante_sim::{Mutant, PROPERTIES, scenario};
use serde::Serialize;

use super::Failed;
use super::args::ListArgs;
use super::output::Output;
use super::targets::targets;
use crate::report::table;

/// `restante-sim/list/1`.
#[derive(Debug, Serialize)]
struct Listed {
    schema: &'static str,
    scenarios: Vec<ListedScenario>,
    properties: &'static [Property],
    mutants: Vec<ListedMutant>,
}

#[derive(Debug, Serialize)]
struct ListedScenario {
    name: String,
    why: String,
}

#[derive(Debug, Serialize)]
struct ListedMutant {
    name: &'static str,
    property: &'static str,
    scenario: &'static str,
    /// The bound whose exploration finds it.
    bound: Option<&'static str>,
    /// Why no bound has what it needs.
    beyond: Option<&'static str>,
    sentence: &'static str,
}

pub(super) fn list(args: &ListArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let targets = targets(scenario::builtin_names())?;
    let scenario = |target: restante_sim::campaign::Target| ListedScenario { name: target.source, why: target.scenario.why };
    let mutant = |mutant: &Mutant| ListedMutant {
        name: mutant.name(),
        property: mutant.property(),
        scenario: mutant.scenario(),
        bound: mutant.bound().ok(),
        beyond: mutant.bound().err(),
        sentence: mutant.sentence(),
    };
    let listed = Listed {
        schema: "restante-sim/list/1",
        scenarios: targets.into_iter().map(scenario).collect(),
        properties: PROPERTIES,
        mutants: Mutant::ALL.iter().map(mutant).collect(),
    };
    if args.json {
        output.json(&listed);
    } else {
        output.text(&text(&listed));
    }
    Ok(Verdict::Pass)
}

fn text(listed: &Listed) -> String {
    let row = |cells: &[&str]| [""].iter().chain(cells).map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let scenarios: Vec<_> = listed.scenarios.iter().map(|scenario| row(&[&scenario.name, &scenario.why])).collect();
    let property = |property: &Property| row(&[&property.quantifier.to_string(), property.name, property.sentence]);
    let properties: Vec<_> = listed.properties.iter().map(property).collect();
    let mutant = |mutant: &ListedMutant| {
        let bound = mutant.bound.unwrap_or("-");
        row(&[mutant.name, mutant.property, mutant.scenario, bound, mutant.sentence])
    };
    let mutants: Vec<_> = listed.mutants.iter().map(mutant).collect();
    format!(
        "scenarios\n{}\nproperties\n{}\nplanted bugs: the property that is there for each, the scenario it is looked for in, and the bound\n{}",
        table(&scenarios, &[]),
        table(&properties, &[]),
        table(&mutants, &[])
    )
}
