//! Which fields there are.

use restante_core::Config;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fill::{Field, Place, Problem, fill};
use super::{MasterKeySource, SenderSettings, Settings, SigningSettings, SqliteSettings};

pub(super) fn read(settings: &mut Settings, table: &DeTable<'_>, text: &str) -> Result<(), Problem> {
    fill(table, of_config(&mut settings.config), &["sender", "sqlite", "signing"], text)?;
    // Unlike every other field it has no value before it is given one.
    let is_given = table.keys().any(|name| matches!(name.get_ref().as_ref(), "max_retention" | "max_retention_ms"));
    settings.max_retention_ms = is_given.then_some(settings.config.max_retention_ms);
    if let Some(table) = section(table, "sender", text)? {
        fill(table, of_sender(&mut settings.sender), &[], text)?;
    }
    if let Some(table) = section(table, "sqlite", text)? {
        fill(table, of_sqlite(&mut settings.sqlite), &[], text)?;
    }
    if let Some(table) = section(table, "signing", text)? {
        let SigningSettings { prefix, sealing, master_keys } = &mut settings.signing;
        fill(table, vec![("prefix", Place::Text(prefix)), ("sealing", Place::Count32(sealing))], &["master_keys"], text)?;
        if let Some(value) = table.get("master_keys") {
            *master_keys = sources(value, text)?;
        }
    }
    Ok(())
}

fn section<'t>(table: &'t DeTable<'t>, name: &str, text: &str) -> Result<Option<&'t DeTable<'t>>, Problem> {
    let Some(value) = table.get(name) else { return Ok(None) };
    match value.get_ref().as_table() {
        Some(table) => Ok(Some(table)),
        None => Err(Problem::at(text, &value.span(), format!("{name} must be a section: [{name}]"))),
    }
}

fn sources(value: &Spanned<DeValue<'_>>, text: &str) -> Result<Vec<MasterKeySource>, Problem> {
    let expected = "master_keys must be a list, such as [{ number = 1, file = \"/run/secrets/master-1\" }]";
    let wrong = |value: &Spanned<DeValue<'_>>, what: &str| Problem::at(text, &value.span(), what);
    let listed = value.get_ref().as_array().ok_or_else(|| wrong(value, expected))?;
    let mut sources = Vec::new();
    for item in listed.iter() {
        let table = item.get_ref().as_table().ok_or_else(|| wrong(item, expected))?;
        let mut source = MasterKeySource::default();
        let MasterKeySource { number, file, env } = &mut source;
        fill(table, vec![("number", Place::Count32(number)), ("file", Place::Text(file)), ("env", Place::Text(env))], &[], text)?;
        if file.is_empty() == env.is_empty() {
            return Err(wrong(item, "a master key has either a file or an env, the name of an environment variable"));
        }
        sources.push(source);
    }
    Ok(sources)
}

/// Taken apart without a rest, so that a new setting cannot be forgotten here.
fn of_config(config: &mut Config) -> Vec<Field<'_>> {
    let Config {
        prefix,
        max_retention_ms,
        lease_ms,
        request_timeout_ms,
        lease_margin_ms,
        gate_freshness_ms,
        max_clock_skew_ms,
        attempts_max,
        backoff_initial_ms,
        backoff_max_ms,
        permanent_codes,
        inline_bytes_max,
        chunk_bytes,
        stage_deadline_ms,
        recipients_max,
        poll_interval_ms,
        sweep_interval_ms,
        window,
        concurrency,
        pointer_shards,
        pointer_bucket_ms,
        counter_slots,
        marker_retention_ms,
        dead_letter_retention_ms,
        quarantine_retention_ms,
        tries_max,
        conflict_pause_ms,
        expand_entries_max,
        expand_lanes_max,
        concurrency_per_destination,
        ramp_step_ms,
        resume_jitter_ms,
        held_recheck_interval_ms,
        hold_cap_ms,
        retry_age_max_ms,
        breaker_failures,
        breaker_window_ms,
        breaker_recovery_ms,
        circuit_held_max_ms,
    } = config;
    vec![
        ("prefix", Place::SharedText(prefix)),
        ("max_retention", Place::Ms(max_retention_ms)),
        ("lease", Place::Ms(lease_ms)),
        ("request_timeout", Place::Ms(request_timeout_ms)),
        ("lease_margin", Place::Ms(lease_margin_ms)),
        ("gate_freshness", Place::Ms(gate_freshness_ms)),
        ("max_clock_skew", Place::Ms(max_clock_skew_ms)),
        ("attempts_max", Place::Count32(attempts_max)),
        ("backoff_initial", Place::Ms(backoff_initial_ms)),
        ("backoff_max", Place::Ms(backoff_max_ms)),
        ("permanent_codes", Place::Codes(permanent_codes)),
        ("inline_bytes_max", Place::Size(inline_bytes_max)),
        ("chunk_bytes", Place::Size(chunk_bytes)),
        ("stage_deadline", Place::Ms(stage_deadline_ms)),
        ("recipients_max", Place::Size(recipients_max)),
        ("poll_interval", Place::Ms(poll_interval_ms)),
        ("sweep_interval", Place::Ms(sweep_interval_ms)),
        ("window", Place::Size(window)),
        ("concurrency", Place::Size(concurrency)),
        ("pointer_shards", Place::Count(pointer_shards)),
        ("pointer_bucket", Place::Ms(pointer_bucket_ms)),
        ("counter_slots", Place::Count(counter_slots)),
        ("marker_retention", Place::Ms(marker_retention_ms)),
        ("dead_letter_retention", Place::Ms(dead_letter_retention_ms)),
        ("quarantine_retention", Place::Ms(quarantine_retention_ms)),
        ("tries_max", Place::Count32(tries_max)),
        ("conflict_pause", Place::Ms(conflict_pause_ms)),
        ("expand_entries_max", Place::Size(expand_entries_max)),
        ("expand_lanes_max", Place::Size(expand_lanes_max)),
        ("concurrency_per_destination", Place::Size(concurrency_per_destination)),
        ("ramp_step", Place::Ms(ramp_step_ms)),
        ("resume_jitter", Place::Ms(resume_jitter_ms)),
        ("held_recheck_interval", Place::Ms(held_recheck_interval_ms)),
        ("hold_cap", Place::Ms(hold_cap_ms)),
        ("retry_age_max", Place::Ms(retry_age_max_ms)),
        ("breaker_failures", Place::Size(breaker_failures)),
        ("breaker_window", Place::Ms(breaker_window_ms)),
        ("breaker_recovery", Place::Ms(breaker_recovery_ms)),
        ("circuit_held_max", Place::Ms(circuit_held_max_ms)),
    ]
}

fn of_sender(sender: &mut SenderSettings) -> Vec<Field<'_>> {
    vec![
        ("connect_timeout", Place::Ms(&mut sender.connect_timeout_ms)),
        ("allow_private_addresses", Place::Flag(&mut sender.allow_private_addresses)),
        ("allow_networks", Place::Texts(&mut sender.allow_networks)),
        ("allow_http", Place::Flag(&mut sender.allow_http)),
        ("allow_unsigned", Place::Flag(&mut sender.allow_unsigned)),
        ("user_agent", Place::Text(&mut sender.user_agent)),
        ("content_type", Place::Text(&mut sender.content_type)),
        ("tls_roots_files", Place::Texts(&mut sender.tls_roots_files)),
    ]
}

fn of_sqlite(sqlite: &mut SqliteSettings) -> Vec<Field<'_>> {
    vec![
        ("busy_timeout", Place::Ms(&mut sqlite.busy_timeout_ms)),
        ("group_max", Place::Size(&mut sqlite.group_max)),
        ("readers", Place::Size(&mut sqlite.readers)),
    ]
}

#[cfg(test)]
pub(super) fn names(settings: &mut Settings) -> Vec<&'static str> {
    let fields = [of_config(&mut settings.config), of_sender(&mut settings.sender), of_sqlite(&mut settings.sqlite)];
    fields.iter().flatten().map(|(name, _)| *name).chain(["prefix", "sealing", "master_keys"]).collect()
}
