//! The driver from outside: what a server that embeds it sees.

mod bed;
mod building;
mod fanout;
mod holding;
mod legacy;
mod sending;
mod stopping;
mod telemetry;
mod working;
