//! Chromium without a screen, driven over its debugging pipe: commands and answers are JSON, each ended by a zero byte.
//!
//! Invariant: it ends with the value, and no worker of the page runs before its script has.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use wayferry_stage::now;

use crate::bench::processes::{Process, system};
use crate::error::{Error, SessionError};

/// A browser with one page.
pub(super) struct Chromium {
    _process: Process,
    commands: File,
    answers: File,
    heard: Vec<u8>,
    calls: u64,
    page: Option<String>,
    /// What runs in each worker before its own script.
    in_workers: String,
}

impl Chromium {
    /// Opens a page, in which this script runs before its own, and another one in each of its workers; what the browser
    /// keeps is in `dir`.
    pub(super) fn open(dir: &Path, address: &str, [script, in_workers]: [String; 2]) -> Result<Self, Error> {
        let mut chromium = Self::start(dir)?;
        chromium.in_workers = in_workers;
        let target = chromium.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = chromium.call("Target.attachToTarget", &attach)?;
        chromium.page = attached["sessionId"].as_str().map(str::to_owned);
        let (width, height) = SIZE;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        chromium.call("Emulation.setDeviceMetricsOverride", &size)?;
        let workers = json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true });
        chromium.call("Target.setAutoAttach", &workers)?;
        chromium.call("Page.enable", &json!({}))?;
        chromium.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }))?;
        let gone = chromium.call("Page.navigate", &json!({ "url": address }))?;
        match gone["errorText"].as_str() {
            Some(error) => Err(lost(&format!("the page was not loaded: {error}"))),
            None => Ok(chromium),
        }
    }

    fn start(dir: &Path) -> Result<Self, Error> {
        let [commands, answers] = ["commands", "answers"].map(|name| dir.join(name));
        let profile = format!("--user-data-dir={}", dir.join("profile").display());
        // Chromium reads commands from descriptor 3 and answers on 4.
        let script = format!("exec chromium \"$@\" 3<'{}' 4>'{}'", commands.display(), answers.display());
        let (commands, answers) = (pipe(&commands)?, pipe(&answers)?);
        let mut command = Command::new("sh");
        command.args(["-c", &script, "chromium"]).args(FLAGS).args([&profile, "about:blank"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::new(command.spawn().map_err(system("starting `chromium`"))?);
        Ok(Self {
            _process: process,
            commands,
            answers,
            heard: Vec::new(),
            calls: 0,
            page: None,
            in_workers: String::new(),
        })
    }

    /// What it calls itself, with its version.
    pub(super) fn name(&mut self) -> Result<String, Error> {
        let version = self.call("Browser.getVersion", &json!({}))?;
        Ok(version["product"].as_str().unwrap_or_default().to_owned())
    }

    /// The value of an expression of JavaScript, once it has one.
    pub(super) fn evaluate(&mut self, expression: &str) -> Result<Value, Error> {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &params)?;
        match answer["exceptionDetails"].is_null() {
            true => Ok(answer["result"]["value"].clone()),
            false => Err(lost(&format!("a script failed: {}", answer["exceptionDetails"]))),
        }
    }

    /// Presses and releases the key of a small letter.
    pub(super) fn press(&mut self, letter: char) -> Result<(), Error> {
        let code = format!("Key{}", letter.to_ascii_uppercase());
        let number = u32::from(letter.to_ascii_uppercase());
        for kind in ["keyDown", "keyUp"] {
            let mut key =
                json!({ "type": kind, "key": letter, "code": code, "windowsVirtualKeyCode": number });
            if kind == "keyDown" {
                key["text"] = json!(letter);
            }
            self.call("Input.dispatchKeyEvent", &key)?;
        }
        Ok(())
    }

    /// The processes that lay out and paint its pages.
    pub(super) fn renderers(&mut self) -> Result<Vec<u64>, Error> {
        let page = self.page.take();
        let told = self.call("SystemInfo.getProcessInfo", &json!({}));
        self.page = page;
        let told = told?;
        let all = told["processInfo"].as_array().into_iter().flatten();
        Ok(all.filter(|process| process["type"] == "renderer").filter_map(|one| one["id"].as_u64()).collect())
    }

    /// Hears what it has said by itself.
    pub(super) fn listen(&mut self) -> Result<(), Error> {
        while self.next(Duration::ZERO)?.is_some() {}
        Ok(())
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        let page = self.page.clone();
        let call = self.send(page.as_deref(), method, params)?;
        let until = now() + PATIENCE;
        while now() < until {
            let Some(answer) = self.next(MOMENT)? else { continue };
            if answer["id"] == json!(call) {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].clone()),
                    false => Err(lost(&format!("`{method}`: {}", answer["error"]))),
                };
            }
        }
        Err(lost(&format!("no answer to `{method}`")))
    }

    /// Says something to a page, a worker, or the browser itself; gives the number of its answer.
    fn send(&mut self, to: Option<&str>, method: &str, params: &Value) -> Result<u64, Error> {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = to {
            call["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{call}\0").as_bytes()).map_err(system("telling `chromium`"))?;
        Ok(self.calls)
    }

    /// The next thing that it says within a moment; a worker that has come is let go on.
    fn next(&mut self, moment: Duration) -> Result<Option<Value>, Error> {
        let said = self.read(moment)?;
        let params = said.as_ref().filter(|said| said["method"] == "Target.attachedToTarget");
        let params = params.map(|new| &new["params"]).filter(|new| new["targetInfo"]["type"] == "worker");
        if let Some(session) = params.and_then(|new| new["sessionId"].as_str()) {
            let script = json!({ "expression": self.in_workers });
            self.send(Some(session), "Runtime.evaluate", &script)?;
            self.send(Some(session), "Runtime.runIfWaitingForDebugger", &json!({}))?;
        }
        Ok(said)
    }

    fn read(&mut self, moment: Duration) -> Result<Option<Value>, Error> {
        if !self.heard.contains(&0) {
            let mut descriptors = [PollFd::new(&self.answers, PollFlags::IN)];
            let moment = Timespec::try_from(moment).unwrap_or_default();
            let ready = poll(&mut descriptors, Some(&moment)).map_err(|error| error.into());
            if ready.map_err(system("waiting for `chromium`"))? == 0 {
                return Ok(None);
            }
            let mut part = vec![0; 1 << 16];
            let length = self.answers.read(&mut part).map_err(system("hearing `chromium`"))?;
            self.heard.extend_from_slice(&part[..length]);
        }
        let Some(end) = self.heard.iter().position(|byte| *byte == 0) else { return Ok(None) };
        let said: Vec<u8> = self.heard.drain(..=end).collect();
        Ok(serde_json::from_slice(&said[..end]).ok())
    }
}

/// Readable when it has said something.
impl AsFd for Chromium {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.answers.as_fd()
    }
}

fn lost(what: &str) -> Error {
    SessionError::Lost(format!("the browser: {what}")).into()
}

/// A pipe with a name, open at both ends, so that no end waits for the other to be opened.
fn pipe(path: &Path) -> Result<File, SessionError> {
    let made = mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).map_err(|error| error.into());
    made.map_err(system("making a pipe"))?;
    OpenOptions::new().read(true).write(true).open(path).map_err(system("opening a pipe"))
}

const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
];

/// Of the page: Wayferry's has a bar of 36 pixels above 800 × 600.
const SIZE: (u32, u32) = (800, 636);

/// How long an answer may take, and a look for one.
const PATIENCE: Duration = Duration::from_secs(30);
const MOMENT: Duration = Duration::from_millis(100);
