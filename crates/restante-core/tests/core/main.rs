//! The core from outside: every operation on a store that can be told to misbehave, and every byte it writes.

mod accept;
mod bed;
mod books;
mod boundaries;
mod circuits;
mod claim;
mod doctor;
mod fanout;
mod golden;
mod holds;
mod keyed_queue_regressions;
mod lanes;
mod legacy;
mod picks;
mod pointers;
mod program;
mod quarantine;
mod records;
mod run;
mod runs;
mod settle;
mod staging;
mod sweep;
mod totality;
mod views;
mod witness;
