//! One binary for all end-to-end tests and repository checks.

mod backlog_on_sqlite;
mod exploration;
mod generated;
mod mutants;
mod repository;
mod seeds;
mod traces;
