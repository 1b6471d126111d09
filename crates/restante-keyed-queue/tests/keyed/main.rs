//! The queue from outside, on tokio. Time is paused in most tests: sleeps take none, and happen in order.

mod bed;
mod cancel;
mod idle;
mod order;
mod panics;
mod pause;
mod purity;
mod regressions;
mod retry;
mod runtime;
mod stop;
mod stress;
