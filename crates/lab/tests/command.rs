//! The laboratory as a program.

use std::process::{Command, Output};

fn lab(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wayferry-lab"));
    command.args(words).env_remove("WAYLAND_DISPLAY").output().expect("it starts")
}

#[test]
fn wrong_use_is_told_in_two_lines() {
    for words in [&["bench", "nothing"][..], &["demo", "--loss", "much"], &[]] {
        let output = lab(words);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{words:?}: {messages}");
        assert!(messages.starts_with("error: ") && messages.contains("\nhint: "), "{words:?}: {messages}");
    }
}

#[test]
fn a_bench_writes_rows_that_name_their_case() {
    let file = std::env::temp_dir().join(format!("wayferry-lab-{}.json", std::process::id()));
    let path = file.display().to_string();
    let output = lab(&["bench", "windows", "--quick", "--only", "start-up", "--json", &path]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let text = std::fs::read_to_string(&file).expect("results");
    std::fs::remove_file(&file).expect("it is there");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["case"] == "start-up"), "{text}");
    assert!(rows.iter().any(|row| row["p50"].as_f64().is_some_and(|p50| p50 > 0.0)), "{text}");
}
