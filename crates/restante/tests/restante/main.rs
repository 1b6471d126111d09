//! The program as a whole: the real executable, a receiver on the loopback interface, files in a folder of the test's own.

mod api;
mod bad_arguments;
mod bad_requests;
mod bad_stores;
mod bed;
mod clocks;
mod commands;
mod dead_letters;
mod holds;
mod http;
mod keys;
mod openapi;
mod operators;
mod outputs;
mod receiver;
mod stopping;
