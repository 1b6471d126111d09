//! Large payloads are staged in chunks before the send that publishes them.

use restante_core_derive::VisitAtoms;
use restante_kv::Guard;

use super::{Outcome, Planner, Stop};
use crate::atoms::{Bytes, SendId};
use crate::record::{PayloadChunk, Stage};

/// Announces chunks, so that they are collected if nobody publishes them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct StageBegin {
    /// The send to come.
    pub send: SendId,
}

impl StageBegin {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.stage(self.send);
        if p.guard::<Stage>(&key)?.is_none() {
            let deadline = p.now().plus_ms(p.env.config.stage_deadline_ms);
            p.put(key, &Stage { deadline }, Guard::Checked);
        }
        Ok(Outcome::Done)
    }
}

/// Puts one chunk. It counts for nothing until an accept publishes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, VisitAtoms)]
pub struct StageChunk {
    /// The send to come.
    pub send: SendId,
    /// Number of the chunk, from 0.
    pub number: u32,
    /// Its bytes.
    pub bytes: Bytes,
}

impl StageChunk {
    pub(super) fn plan(&self, p: &mut Planner<'_>) -> Result<Outcome, Stop> {
        let key = p.env.keys.chunk(self.send, self.number);
        p.put(key, &PayloadChunk { bytes: self.bytes.clone() }, Guard::Idempotent);
        Ok(Outcome::Done)
    }
}
