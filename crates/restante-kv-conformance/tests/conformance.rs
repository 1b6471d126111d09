//! The checks on the stores of this workspace, and on one that uses every liberty of the contract.

mod awkward;
mod stores;

use std::process::ExitCode;

fn main() -> ExitCode {
    restante_kv_conformance::main(stores::all().map(|suite| suite.from_environment()))
}
