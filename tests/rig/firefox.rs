//! Firefox without a screen, driven over Marionette: commands and answers are arrays of JSON, each behind its length in
//! digits and a colon.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::chromium::{READ_CANVAS, read_canvas};
use super::home::Home;
use super::program::Program;
use super::{PATIENCE, Picture, until};

/// A browser with one page.
pub(crate) struct Firefox {
    _program: Program,
    link: TcpStream,
    calls: u64,
}

impl Firefox {
    /// Opens a page.
    pub(crate) fn open(home: &Home, address: &str) -> Self {
        let profile = home.file("firefox");
        fs::create_dir(&profile).expect("a directory for the profile");
        home.give(&profile);
        home.write("firefox/user.js", PREFERENCES);
        let words = ["--headless", "--no-remote", "--marionette", "--profile"];
        let launch = home.launch("firefox-esr").args(words).arg(profile.display().to_string());
        let program = launch.start();
        let port = until("Firefox to listen", || {
            let port = fs::read_to_string(profile.join("MarionetteActivePort")).ok()?;
            port.trim().parse::<u16>().ok()
        });
        let link = TcpStream::connect(("127.0.0.1", port)).expect("Firefox listens");
        link.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut firefox = Self { _program: program, link, calls: 0 };
        // It says who it is first.
        firefox.read();
        firefox.call("WebDriver:NewSession", &json!({ "capabilities": {} }));
        // The page may ask before it is left; navigating must not wait for all that it loads.
        firefox.call("WebDriver:Navigate", &json!({ "url": address }));
        firefox
    }

    /// The value of an expression of JavaScript.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let script = format!("return ({expression})");
        self.call("WebDriver:ExecuteScript", &json!({ "script": script, "args": [] }))["value"].clone()
    }

    /// What a canvas of the page shows, once it has a size.
    pub(crate) fn canvas(&mut self) -> Option<Picture> {
        read_canvas(&self.evaluate(READ_CANVAS))
    }

    /// Presses and releases the keys of these characters.
    pub(crate) fn press(&mut self, keys: &str) {
        for key in keys.chars() {
            let steps = ["keyDown", "keyUp"].map(|step| json!({ "type": step, "value": key }));
            let actions = json!([{ "type": "key", "id": "keys", "actions": steps }]);
            self.call("WebDriver:PerformActions", &json!({ "actions": actions }));
        }
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.calls += 1;
        let call = json!([0, self.calls, method, parameters]).to_string();
        let framed = format!("{}:{call}", call.len());
        self.link.write_all(framed.as_bytes()).expect("Firefox reads");
        let mut answer = self.read();
        assert_eq!(answer[1], json!(self.calls), "answers come in order: {answer}");
        assert!(answer[2].is_null(), "`{method}`: {}", answer[2]);
        answer[3].take()
    }

    fn read(&mut self) -> Value {
        let mut digits = String::new();
        let mut byte = [0];
        loop {
            self.link.read_exact(&mut byte).expect("Firefox answers");
            match byte[0] {
                b':' => break,
                digit => digits.push(digit.into()),
            }
        }
        let mut said = vec![0; digits.parse().expect("a length")];
        self.link.read_exact(&mut said).expect("Firefox answers");
        serde_json::from_slice(&said).expect("JSON")
    }
}

/// It fetches nothing by itself, and listens where it likes.
const PREFERENCES: &str = r#"user_pref("marionette.port", 0);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.preonboarding.enabled", false);
user_pref("datareporting.policy.dataSubmissionPolicyBypassNotification", true);
user_pref("termsofuse.bypassNotification", true);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
"#;
