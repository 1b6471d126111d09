//! The description of the API against the router's own list and the server's own types.

use std::collections::{BTreeMap, BTreeSet};

use restante::Fault;
use restante::api::{OPENAPI, Operation, ReleaseHoldBody, RunOnceBody, SendBody, SetHoldBody, SetIntakeBody};
use restante::fault::Code;
use restante::views::{
    AcceptedView, DeadLettersView, DepthView, DestinationView, DestinationsView, DoneView, EntriesView, EntryView, FaultView,
    HealthView, IntakeView, QuarantinesView, RunView,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

fn description() -> Value {
    serde_json::from_str(OPENAPI).expect("the description is JSON")
}

/// Every operation of the description: (method, path) and what stands there.
fn described() -> BTreeMap<(String, String), Value> {
    let description = description();
    let paths = description["paths"].as_object().expect("paths");
    let of_path = |(path, operations): (&String, &Value)| {
        let operations = operations.as_object().expect("operations").clone();
        operations.into_iter().map(|(method, operation)| ((method.to_uppercase(), path.clone()), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

fn key(operation: Operation) -> (String, String) {
    (operation.method().to_owned(), operation.path().to_owned())
}

/// The examples of a content, references followed.
fn examples(content: &Value) -> Vec<Value> {
    let description = description();
    let examples = content["content"]["application/json"]["examples"].as_object().expect("examples");
    let value = |example: &Value| match example["$ref"].as_str() {
        Some(reference) => description.pointer(reference.trim_start_matches('#')).expect("a target")["value"].clone(),
        None => example["value"].clone(),
    };
    examples.values().map(value).collect()
}

fn read<T: DeserializeOwned>(example: &Value) {
    let text = example.to_string();
    if let Err(error) = serde_json::from_str::<T>(&text) {
        panic!("{text}: {error}");
    }
}

#[test]
fn every_operation_is_described_and_nothing_else() {
    let routed: BTreeSet<_> = Operation::ALL.into_iter().map(key).collect();
    let described: BTreeSet<_> = described().into_keys().collect();
    assert_eq!(routed, described);
}

#[test]
fn every_status_and_every_code_is_described_where_it_can_come_and_nowhere_else() {
    let described = described();
    for operation in Operation::ALL {
        let responses = described[&key(operation)]["responses"].as_object().expect("responses");
        let statuses: Vec<u16> = responses.keys().map(|status| status.parse().expect("a status")).collect();
        assert_eq!(operation.statuses(), statuses, "{operation:?}");
        for (status, response) in responses {
            let text = response["description"].as_str().expect("a description");
            let codes = text.split_once(" Codes: ").map(|(_, codes)| codes.trim_end_matches('.')).unwrap_or_default();
            let told: BTreeSet<_> =
                codes.split(", ").map(|code| code.trim_matches('`')).filter(|code| !code.is_empty()).collect();
            let declared =
                operation.faults().into_iter().filter(|code| code.status().map(|code| code.to_string()).as_ref() == Some(status));
            assert_eq!(told, declared.map(Code::name).collect(), "{operation:?} {status}");
        }
    }
}

#[test]
fn the_server_accepts_every_example_of_a_request() {
    let described = described();
    for operation in Operation::ALL {
        let body = &described[&key(operation)]["requestBody"];
        match operation {
            Operation::Send => {
                for example in examples(body) {
                    let asked: SendBody = serde_json::from_str(&example.to_string()).expect("a request");
                    asked.into_message().expect("a message");
                }
            }
            Operation::RunOnce => examples(body).iter().for_each(read::<RunOnceBody>),
            Operation::SetIntake => examples(body).iter().for_each(read::<SetIntakeBody>),
            Operation::SetHold => examples(body).iter().for_each(read::<SetHoldBody>),
            Operation::ReleaseHold => examples(body).iter().for_each(read::<ReleaseHoldBody>),
            Operation::Health
            | Operation::Depth
            | Operation::Entries
            | Operation::Entry
            | Operation::Drained
            | Operation::Quarantine
            | Operation::Revive
            | Operation::DropQuarantined
            | Operation::DeadLetters
            | Operation::Destinations => assert!(body.is_null(), "{operation:?} has no body"),
        }
    }
}

#[test]
fn every_example_of_an_answer_is_one() {
    let described = described();
    for operation in Operation::ALL {
        let responses = &described[&key(operation)]["responses"];
        let done = &responses[operation.done().to_string()];
        let is_read: fn(&Value) = match operation {
            Operation::Health => read::<HealthView>,
            Operation::Send => read::<AcceptedView>,
            Operation::Depth | Operation::Drained => read::<DepthView>,
            Operation::Entries => read::<EntriesView>,
            Operation::Entry => read::<EntryView>,
            Operation::RunOnce => read::<RunView>,
            Operation::SetIntake => read::<IntakeView>,
            Operation::Quarantine => read::<QuarantinesView>,
            Operation::Revive | Operation::DropQuarantined => read::<DoneView>,
            Operation::DeadLetters => read::<DeadLettersView>,
            Operation::Destinations => read::<DestinationsView>,
            Operation::SetHold | Operation::ReleaseHold => read::<DestinationView>,
        };
        examples(done).iter().for_each(is_read);
        for code in operation.faults() {
            let status = code.status().expect("an answer of the API has a status").to_string();
            let told = examples(&responses[&status]);
            told.iter().for_each(read::<FaultView>);
            assert!(told.iter().any(|example| example["code"] == code.name()), "{operation:?} {status} {}", code.name());
        }
    }
}

/// Schemas name the same fields as the types: an example with every field of the schema is read, so what is left to check is that
/// the types have no more.
#[test]
fn the_fields_of_a_schema_are_those_of_the_examples() {
    let schemas = &description()["components"]["schemas"];
    let fault = FaultView::from(&Fault::unknown_id("x"));
    let fields = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(fields(&schemas["Fault"]["properties"]), fields(&serde_json::to_value(fault).expect("JSON")));
    for (name, schema) in schemas.as_object().expect("schemas") {
        let Some(properties) = schema["properties"].as_object() else { continue };
        for required in schema["required"].as_array().expect("what is required") {
            assert!(properties.contains_key(required.as_str().expect("a name")), "{name} has no {required}");
        }
    }
}

#[test]
fn the_program_prints_the_description() {
    let done = crate::bed::program(&std::env::temp_dir()).arg("openapi").output().expect("the program");
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned()), (Some(0), OPENAPI.to_owned()));
}
