//! `list`: what there is.

use restante_engine::Property;
use restante_sim::campaign::{KEYED, KEYED_WHY, KeyedBound, Planted, Simulated, Verdict};
use restante_sim::scenario;
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
    /// Those of the keyed queue.
    keyed_properties: &'static [Property],
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
    world: Simulated,
    property: &'static str,
    scenario: &'static str,
    /// The bound whose exploration finds it.
    bound: Option<String>,
    /// Why no bound has what it needs.
    beyond: Option<&'static str>,
    sentence: &'static str,
}

pub(super) fn list(args: &ListArgs, output: &mut Output) -> Result<Verdict, Failed> {
    let targets = targets(scenario::builtin_names())?;
    let scenario = |target: restante_sim::campaign::Target| ListedScenario { name: target.source, why: target.scenario.why };
    let keyed = KeyedBound::all().map(|bound| (bound.name, KeyedBound::WHY));
    let keyed = [(KEYED.to_owned(), KEYED_WHY)].into_iter().chain(keyed);
    let keyed = keyed.map(|(name, why)| ListedScenario { name, why: why.to_owned() });
    let listed = Listed {
        schema: "restante-sim/list/1",
        scenarios: targets.into_iter().map(scenario).chain(keyed).collect(),
        properties: Simulated::Backlog.properties(),
        keyed_properties: Simulated::Keyed.properties(),
        mutants: Planted::all().map(listed_mutant).collect(),
    };
    if args.json {
        output.json(&listed);
    } else {
        output.text(&text(&listed));
    }
    Ok(Verdict::Pass)
}

fn listed_mutant(planted: Planted) -> ListedMutant {
    let bound = match planted {
        Planted::Backlog(mutant) => mutant.bound().map(str::to_owned),
        Planted::Keyed(_) => {
            let [bound, _] = KeyedBound::all();
            Ok(bound.name)
        }
    };
    ListedMutant {
        name: planted.name(),
        world: planted.simulated(),
        property: planted.property(),
        scenario: planted.workload(),
        beyond: bound.as_ref().err().copied(),
        bound: bound.ok(),
        sentence: planted.sentence(),
    }
}

fn text(listed: &Listed) -> String {
    let row = |cells: &[&str]| [""].iter().chain(cells).map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let scenarios: Vec<_> = listed.scenarios.iter().map(|scenario| row(&[&scenario.name, &scenario.why])).collect();
    let property = |property: &Property| row(&[&property.quantifier.to_string(), property.name, property.sentence]);
    let properties = |of: &[Property]| table(&of.iter().map(property).collect::<Vec<_>>(), &[]);
    let mutant = |mutant: &ListedMutant| {
        let bound = mutant.bound.as_deref().unwrap_or("-");
        row(&[mutant.name, mutant.property, mutant.scenario, bound, mutant.sentence])
    };
    let mutants = |world| {
        let rows = listed.mutants.iter().filter(|mutant| mutant.world == world).map(mutant);
        table(&rows.collect::<Vec<_>>(), &[])
    };
    let columns = "the property that is there for each, the scenario it is looked for in, and the bound";
    format!(
        "scenarios\n{}\nproperties\n{}\nproperties of the keyed queue\n{}\nplanted bugs: {columns}\n{}\nplanted bugs of the keyed queue\n{}",
        table(&scenarios, &[]),
        properties(listed.properties),
        properties(listed.keyed_properties),
        mutants(Simulated::Backlog),
        mutants(Simulated::Keyed)
    )
}
