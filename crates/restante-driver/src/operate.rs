//! Runs one command, one send or one examination to its end.

use std::sync::Arc;

use restante_core::atoms::{Fence, SendId};
use restante_core::machine::{
    About, Doctor, DoctorReport, DoctorStep, Failure, Io, LocalTime, Reply, SendError, SendRequest, Sending, SendingStep, TaskId,
    Transact, TransactStep,
};
use restante_core::plan::Accept;
use restante_core::{Command, Outcome};
use restante_journal::Operation;
use tracing::Instrument as _;

use crate::recording::Recording;
use crate::shared::Shared;

/// The one task of an operation that is no worker.
const TASK: TaskId = TaskId::new(0);

impl Shared {
    /// Brings a command to its outcome.
    pub(crate) async fn command(self: &Arc<Self>, command: Command) -> Result<Outcome, Failure> {
        let begun = self.local();
        let recording = Recording::begin(self, begun, || Operation::Command { name: command.name().to_owned() });
        let (mut transact, mut step) = Transact::begin(&self.env, command, Fence::default(), begun);
        loop {
            match step {
                TransactStep::Do(io) => {
                    let (reply, local) = self.execute_recorded(&recording, transact.about(), io).await;
                    step = transact.step(&self.env, reply, local);
                }
                TransactStep::Done(result) => {
                    let (outcome, effects) = result?;
                    self.telemetry.observe(self, effects);
                    return Ok(outcome);
                }
            }
        }
    }

    /// Examines everything.
    pub(crate) async fn doctor(self: &Arc<Self>, repair: bool) -> Result<DoctorReport, Failure> {
        let recording = Recording::begin(self, self.local(), || Operation::Command { name: "doctor".to_owned() });
        let (mut doctor, mut step) = Doctor::begin(&self.env, repair);
        loop {
            match step {
                DoctorStep::Do(io) => {
                    let (reply, local) = self.execute_recorded(&recording, doctor.about(), io).await;
                    step = doctor.step(&self.env, reply, local);
                }
                DoctorStep::Done(result) => {
                    let (report, effects) = result?;
                    self.telemetry.observe(self, effects);
                    return Ok(report);
                }
            }
        }
    }

    /// Brings a send to the point where the backlog owns it. Returns its id, and whether an earlier request was accepted.
    pub(crate) async fn accept(self: &Arc<Self>, request: SendRequest) -> Result<(SendId, bool), SendError> {
        let span = tracing::debug_span!("send", send = %request.send);
        self.accept_in_span(request).instrument(span).await
    }

    async fn accept_in_span(self: &Arc<Self>, request: SendRequest) -> Result<(SendId, bool), SendError> {
        let slot = self.slots.take().await;
        let (begun, digest) = (self.local(), Accept::digest_payload(&request.payload));
        let recording = Recording::begin(self, begun, || Operation::of_send(&request, digest, slot.number()));
        let (mut sending, mut step) = Sending::begin_again(&self.env, request, digest, slot.number(), begun);
        loop {
            match step {
                SendingStep::Do(io) => {
                    let (reply, local) = self.execute_recorded(&recording, sending.about(), io).await;
                    step = sending.step(&self.env, reply, local);
                }
                SendingStep::Done(result) => {
                    let (send, duplicate, effects) = result?;
                    self.telemetry.observe(self, effects);
                    return Ok((send, duplicate));
                }
            }
        }
    }

    async fn execute_recorded(self: &Arc<Self>, recording: &Recording, about: About, io: Io) -> (Reply, LocalTime) {
        let keys = recording.keys_of(&io);
        recording.asked(self, TASK, &about, &io);
        let reply = self.execute(io, None).await;
        let local = self.local();
        recording.answered(self, TASK, &reply, &keys, local);
        (reply, local)
    }
}
