//! The fault sites: which alternatives each place of the world has, weighted as the scenario asks.

use restante_engine::Alternative;

use crate::scenario::{Faults, Share};

/// A site with its alternatives; the first is benign, the others are named after their fault family.
#[derive(Clone, Debug)]
pub(crate) struct FaultSite {
    pub(crate) site: &'static str,
    pub(crate) alternatives: Vec<Alternative>,
}

impl FaultSite {
    fn new(site: &'static str, faults: &[(&'static str, Share)]) -> Self {
        let sum = faults.iter().fold(0_u32, |sum, (_, share)| sum.saturating_add(share.0));
        let mut alternatives = vec![Alternative::new("ok", 1_000_000_u32.saturating_sub(sum))];
        alternatives.extend(faults.iter().filter(|(_, share)| share.0 > 0).map(|(name, share)| Alternative::new(name, share.0)));
        Self { site, alternatives }
    }

    /// Whether anything but the benign alternative can happen.
    pub(crate) fn is_armed(&self) -> bool {
        self.alternatives.len() > 1
    }
}

/// The sum of the shares of each site's faults, in millionths.
pub(crate) fn fault_sums(faults: &Faults) -> Vec<(&'static str, u64)> {
    let sites = FaultSites::new(faults);
    let sum = |site: &FaultSite| site.alternatives[1..].iter().map(|fault| u64::from(fault.weight)).sum();
    let FaultSites { read, scan, commit, post, answer, signal, old_queue, .. } = &sites;
    [read, scan, commit, post, answer, signal, old_queue].map(|site| (site.site, sum(site))).into()
}

/// The faults that are possible at a site, by family.
pub(crate) fn fault_alternatives(faults: &Faults, site: &str) -> Vec<&'static str> {
    let sites = FaultSites::new(faults);
    let known = sites.all().into_iter().find(|known| known.site == site);
    known.map_or(Vec::new(), |site| site.alternatives[1..].iter().map(|fault| fault.name).collect())
}

/// All fault sites of a world.
#[derive(Clone, Debug)]
pub(crate) struct FaultSites {
    pub(crate) read: FaultSite,
    pub(crate) scan: FaultSite,
    pub(crate) commit: FaultSite,
    pub(crate) post: FaultSite,
    pub(crate) answer: FaultSite,
    pub(crate) signal: FaultSite,
    pub(crate) crash_before_commit: FaultSite,
    pub(crate) crash_after_commit: FaultSite,
    pub(crate) crash_before_post: FaultSite,
    pub(crate) crash_after_post: FaultSite,
    pub(crate) crash_before_wake: FaultSite,
    pub(crate) crash_after_wake: FaultSite,
    pub(crate) pause_before_post: FaultSite,
    pub(crate) pause: FaultSite,
    pub(crate) old_queue: FaultSite,
    pub(crate) old_redelivered: FaultSite,
    pub(crate) crash_before_complete: FaultSite,
    pub(crate) crash_after_complete: FaultSite,
}

impl FaultSites {
    pub(crate) fn new(faults: &Faults) -> Self {
        let Faults { store, network, receiver, process, signals, clocks: _, legacy } = faults;
        Self {
            read: FaultSite::new("kv.read", &[("store.unavailable", store.unavailable), ("store.slow", store.slow)]),
            scan: FaultSite::new(
                "kv.scan",
                &[("store.unavailable", store.unavailable), ("store.short-page", store.short_page), ("store.slow", store.slow)],
            ),
            commit: FaultSite::new(
                "kv.commit",
                &[
                    ("store.unavailable", store.unavailable),
                    ("store.conflict", store.conflict),
                    ("store.ambiguous-committed", store.ambiguous_committed),
                    ("store.ambiguous-lost", store.ambiguous_lost),
                    ("store.ambiguous-late", store.ambiguous_late),
                    ("store.slow", store.slow),
                ],
            ),
            post: FaultSite::new(
                "net.post",
                &[
                    ("network.lost-request", network.lost_request),
                    ("network.lost-response", network.lost_response),
                    ("network.duplicated", network.duplicated),
                    ("network.reset", network.reset),
                    ("network.refused", network.refused),
                    ("network.dns", network.dns),
                    ("network.tls", network.tls),
                    ("network.late", network.late),
                ],
            ),
            answer: FaultSite::new(
                "receiver.answer",
                &[
                    ("receiver.server-error", receiver.server_error),
                    ("receiver.rate-limited", receiver.rate_limited),
                    ("receiver.gone", receiver.gone),
                    ("receiver.refused", receiver.refused),
                ],
            ),
            signal: FaultSite::new(
                "signal.wake",
                &[("signals.lost", signals.lost), ("signals.duplicated", signals.duplicated), ("signals.late", signals.late)],
            ),
            crash_before_commit: FaultSite::new(
                "crash.before-commit",
                &[("process.crash-before-commit", process.crash_before_commit)],
            ),
            crash_after_commit: FaultSite::new(
                "crash.after-commit",
                &[("process.crash-after-commit", process.crash_after_commit)],
            ),
            crash_before_post: FaultSite::new("crash.before-post", &[("process.crash-before-post", process.crash_before_post)]),
            crash_after_post: FaultSite::new("crash.after-post", &[("process.crash-after-post", process.crash_after_post)]),
            crash_before_wake: FaultSite::new("crash.before-wake", &[("process.crash-before-wake", process.crash_before_wake)]),
            crash_after_wake: FaultSite::new("crash.after-wake", &[("process.crash-after-wake", process.crash_after_wake)]),
            pause_before_post: FaultSite::new("pause.before-post", &[("process.pause-before-post", process.pause_before_post)]),
            pause: FaultSite::new("pause.answer", &[("process.pause", process.pause)]),
            old_queue: FaultSite::new(
                "old.queue",
                &[
                    ("legacy.unavailable", legacy.unavailable),
                    ("legacy.ambiguous-done", legacy.ambiguous_done),
                    ("legacy.ambiguous-lost", legacy.ambiguous_lost),
                ],
            ),
            old_redelivered: FaultSite::new("old.receive", &[("legacy.redelivered", legacy.redelivered)]),
            crash_before_complete: FaultSite::new(
                "crash.before-complete",
                &[("legacy.crash-before-complete", legacy.crash_before_complete)],
            ),
            crash_after_complete: FaultSite::new(
                "crash.after-complete",
                &[("legacy.crash-after-complete", legacy.crash_after_complete)],
            ),
        }
    }

    fn all(&self) -> [&FaultSite; 14] {
        let Self { read, scan, commit, post, answer, signal, .. } = self;
        let Self { crash_before_commit, crash_after_commit, crash_before_post, crash_after_post, .. } = self;
        let Self { crash_before_wake, crash_after_wake, pause_before_post, pause, .. } = self;
        let crashes = [crash_before_commit, crash_after_commit, crash_before_post, crash_after_post];
        let [a, b, c, d] = crashes;
        [read, scan, commit, post, answer, signal, a, b, c, d, crash_before_wake, crash_after_wake, pause_before_post, pause]
    }

    /// Adds an alternative to the commit site that did not exist before, one commit in a thousand: what a change of the
    /// simulator would do.
    pub(crate) fn with_new_commit_alternative(mut self) -> Self {
        self.commit.alternatives.push(Alternative::new("store.refused-anew", 1_000));
        self
    }
}
