use proptest::prelude::*;

use super::*;

fn complaint(text: &str) -> String {
    Settings::from_toml(text).expect_err(text).to_string()
}

#[test]
fn a_file_without_fields_is_the_defaults_and_a_hundred_and_twenty_eight_slots() {
    let settings = Settings::from_toml("").expect("nothing is a configuration");
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.config.counter_slots, 128);
    assert_eq!(settings.max_retention_ms, None);
}

#[test]
fn a_duration_is_text_with_a_unit_or_a_number_of_milliseconds() {
    let in_text = Settings::from_toml("max_retention = \"7d\"\nlease = \"90s\"").expect("a configuration");
    let in_ms = Settings::from_toml("max_retention_ms = 604_800_000\nlease_ms = 90000").expect("a configuration");
    assert_eq!(in_text, in_ms);
    assert_eq!((in_text.max_retention_ms, in_text.config.lease_ms), (Some(604_800_000), 90_000));
    assert_eq!(complaint("lease = 90"), "line 1: lease must be a duration in quotes, such as \"10s\"");
    assert_eq!(complaint("lease_ms = \"90s\""), "line 1: lease_ms must be a whole number");
    assert!(complaint("\n\nlease = \"90\"").starts_with("line 3: lease is wrong: \"90\" is no duration"));
    assert_eq!(
        complaint("lease = \"90s\"\nlease_ms = 90000"),
        "line 2: lease is given twice, as lease and as lease_ms: keep one"
    );
}

#[test]
fn an_unknown_field_is_refused_with_the_nearest_name() {
    assert_eq!(complaint("\nmax_retension = \"7d\""), "line 2: there is no field max_retension; did you mean max_retention?");
    assert_eq!(complaint("leas_ms = 1"), "line 1: there is no field leas_ms; did you mean lease?");
    assert_eq!(complaint("[sender]\nallow_htp = true"), "line 2: there is no field allow_htp; did you mean allow_http?");
    assert_eq!(complaint("[sendr]\nallow_http = true"), "line 1: there is no field sendr; did you mean sender?");
    assert_eq!(complaint("attempts_max_ms = 3"), "line 1: there is no field attempts_max_ms; did you mean attempts_max?");
}

#[test]
fn a_value_of_another_kind_is_refused() {
    assert_eq!(complaint("window = \"many\""), "line 1: window must be a whole number");
    assert_eq!(complaint("window = -1"), "line 1: window is -1, which is negative or too large");
    assert_eq!(complaint("attempts_max = 4294967296"), "line 1: attempts_max is 4294967296, which is negative or too large");
    assert_eq!(complaint("permanent_codes = 404"), "line 1: permanent_codes must be a list of status codes, such as [a, b]");
    assert_eq!(complaint("permanent_codes = [70000]"), "line 1: permanent_codes is 70000, which is negative or too large");
    assert_eq!(complaint("prefix = 1"), "line 1: prefix must be a text in quotes");
    assert_eq!(complaint("sender = 1"), "line 1: sender must be a section: [sender]");
    assert_eq!(complaint("[sender]\nallow_http = \"yes\""), "line 2: allow_http must be true or false");
    assert!(complaint("a = = b").starts_with("line 1: it is not TOML ("));
}

#[test]
fn master_keys_have_a_number_and_one_place() {
    let text = "[signing]\nsealing = 2\nmaster_keys = [{ number = 1, env = \"OLD\" }, { number = 2, file = \"/run/new\" }]";
    let settings = Settings::from_toml(text).expect("a configuration");
    assert_eq!(settings.signing.sealing, 2);
    assert_eq!(settings.signing.master_keys[1].file(), Some("/run/new".into()));
    let neither = "[signing]\nmaster_keys = [{ number = 1 }]";
    assert!(complaint(neither).starts_with("line 2: a master key has either a file or an env"));
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_a_complaint(text in r#"([a-z_]{0,20}( = )?["\[\]{}0-9a-z.,-]{0,12}\n?|\PC{0,4}){0,6}"#) {
        let _ = Settings::from_toml(&text);
    }

    #[test]
    fn any_value_of_any_field_is_taken_or_refused(
        field in prop::sample::select(fields::names(&mut Settings::default())),
        value in r#"-?[0-9]{1,25}|"\PC{0,6}"|true|\[\]|\[[0-9]{1,9}\]|\{\}|[0-9]e9"#,
    ) {
        for section in ["", "[sender]\n", "[sqlite]\n", "[signing]\n"] {
            let _ = Settings::from_toml(&format!("{section}{field} = {value}"));
        }
    }

    #[test]
    fn any_text_is_a_duration_or_none(text in r"[0-9]{0,22}(ms|s|m|h|d|\PC{0,3})") {
        let _ = parse_duration_ms(&text);
    }
}

/// The manual shows every field with its default.
#[test]
fn the_defaults_in_the_manual_are_the_defaults() {
    let manual = include_str!("../../../../docs/manual/configuration.md");
    let (_, block) = manual.split_once("```toml\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    let mut shown = Settings::from_toml(block).unwrap_or_else(|problem| panic!("{problem}"));
    assert_eq!(shown.max_retention_ms, Some(604_800_000));
    shown.set_max_retention(None);
    assert_eq!(shown, Settings::default());

    let mut settings = Settings::default();
    for name in fields::names(&mut settings) {
        let is_shown = block.lines().any(|line| line.split_once(" = ").is_some_and(|(field, _)| field == name));
        assert!(is_shown, "{name} is not in the manual");
    }
}
