//! One binary for all end-to-end tests and repository checks.

mod backlog_on_sqlite;
mod conformance;
mod coverage;
mod exploration;
mod fairness;
mod generated;
mod journal;
mod kill;
mod mutants;
mod repository;
mod seeds;
mod swarm;
mod traces;
mod upgrade;
