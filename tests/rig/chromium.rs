//! Chromium without a screen, driven over its debugging pipe: commands and answers are JSON, each ended by a zero byte.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, Timespec, mknodat};
use serde_json::{Value, json};

use super::home::Home;
use super::program::{Launch, Program};
use super::{PATIENCE, Picture, until};

/// A browser with one page.
pub(crate) struct Chromium {
    program: Program,
    commands: File,
    answers: File,
    heard: Vec<u8>,
    calls: u64,
    page: String,
    /// The page's worker and its WebAssembly, once somebody asks for their memory.
    worker: Option<String>,
    wasm: Option<Value>,
}

/// What a page and its worker hold, in bytes, when all garbage is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TabMemory {
    /// Objects of scripts.
    pub(crate) heap: usize,
    pub(crate) wasm: usize,
}

impl Chromium {
    /// Opens a page.
    pub(crate) fn open(home: &Home, address: &str) -> Self {
        Self::open_with(home, address, &[], Launch::start)
    }

    /// The same with more flags, started by the caller.
    pub(crate) fn open_with(
        home: &Home,
        address: &str,
        flags: &[&str],
        start: impl FnOnce(Launch) -> Program,
    ) -> Self {
        let [commands, answers] = ["commands", "answers"].map(|name| pipe(home, name));
        let profile = format!("--user-data-dir={}", home.file("profile").display());
        // Chromium reads commands from descriptor 3 and answers on 4.
        let script = format!(
            "exec chromium \"$@\" 3<'{}' 4>'{}'",
            home.file("commands").display(),
            home.file("answers").display()
        );
        let words = [&["-c", &script, "chromium"][..], &FLAGS, flags, &[&profile, "about:blank"]].concat();
        let program = start(home.launch("sh").args(words));
        let (heard, page) = (Vec::new(), String::new());
        let mut chromium =
            Self { program, commands, answers, heard, calls: 0, page, worker: None, wasm: None };
        let target = chromium.call("Target.createTarget", &json!({ "url": address }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = chromium.call("Target.attachToTarget", &attach);
        chromium.page = attached["sessionId"].as_str().expect("a session").to_owned();
        chromium
    }

    /// Goes on to another address.
    pub(crate) fn go(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
    }

    /// Opens another tab before the page.
    pub(crate) fn cover(&mut self) {
        let page = std::mem::take(&mut self.page);
        self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        self.page = page;
    }

    /// The value of an expression of JavaScript.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        // Between the empty page and the one that is opened there is none for a moment.
        let answer = until("a page", || {
            let page = self.page.clone();
            let answer = self.ask_in(&page, "Runtime.evaluate", &params);
            (answer["error"]["message"] != json!(NO_PAGE)).then_some(answer)
        });
        let answer = result("Runtime.evaluate", &answer);
        assert!(answer["exceptionDetails"].is_null(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// What a canvas of the page shows, once it has a size.
    pub(crate) fn canvas(&mut self) -> Option<Picture> {
        read_canvas(&self.evaluate(READ_CANVAS))
    }

    /// Presses and releases a key, by the name of its place and by what it writes or does.
    pub(crate) fn press(&mut self, code: &str, key: &str) {
        let mut event = json!({ "type": "keyDown", "code": code, "key": key });
        if key.len() == 1 {
            event["text"] = json!(key);
        }
        self.call("Input.dispatchKeyEvent", &event);
        self.call("Input.dispatchKeyEvent", &json!({ "type": "keyUp", "code": code, "key": key }));
    }

    /// Presses and releases a key while Control is down, and Shift if it is a capital letter.
    pub(crate) fn shortcut(&mut self, key: char) {
        let capital = key.to_ascii_uppercase();
        let modifiers = if key == capital { 2 | 8 } else { 2 };
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({
                "type": kind, "code": format!("Key{capital}"), "key": key, "modifiers": modifiers,
                "windowsVirtualKeyCode": u32::from(capital)
            });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Pastes by keys as a user does, for which the page has an event: keys alone are none of the browser's here.
    pub(crate) fn paste(&mut self) {
        let event = json!({
            "type": "rawKeyDown", "code": "KeyV", "key": "v", "modifiers": 2, "windowsVirtualKeyCode": 0x56,
            "commands": ["paste"]
        });
        self.call("Input.dispatchKeyEvent", &event);
        let event = json!({ "type": "keyUp", "code": "KeyV", "key": "v", "modifiers": 2 });
        self.call("Input.dispatchKeyEvent", &event);
    }

    /// Lets a page read and write the clipboard.
    pub(crate) fn grant_clipboard(&mut self, origin: &str) {
        let permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"];
        let granted = json!({ "origin": origin, "permissions": permissions });
        self.call("Browser.grantPermissions", &granted);
    }

    /// Writes a text as an input method does.
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Gives the page this size, and so many pixels of the screen to each of its own.
    pub(crate) fn resize(&mut self, width: u32, height: u32, ratio: f64) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": ratio, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Moves the pointer to a place of the page.
    pub(crate) fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Turns the wheel by a step, downwards (1) or upwards (-1), at a place of the page, whose pixels are the screen's:
    /// else Chromium makes a part of a step of it.
    pub(crate) fn wheel(&mut self, x: f64, y: f64, steps: i32) {
        let event = json!({ "type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": 120 * steps });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Presses and releases the left button at a place of the page.
    pub(crate) fn click(&mut self, x: f64, y: f64) {
        self.point(x, y);
        for (kind, buttons) in [("mousePressed", 1), ("mouseReleased", 0)] {
            let event = json!({
                "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// What the page holds, with its worker.
    pub(crate) fn memory(&mut self) -> TabMemory {
        let page = self.page.clone();
        let worker = match &self.worker {
            Some(worker) => worker.clone(),
            None => self.attach_worker(),
        };
        let wasm = match &self.wasm {
            Some(wasm) => wasm.clone(),
            None => self.find_wasm(&worker),
        };
        let heap = self.heap(&page) + self.heap(&worker);
        let add = "function () { return this.reduce((sum, memory) => sum + memory.buffer.byteLength, 0); }";
        let how = json!({ "objectId": wasm, "functionDeclaration": add, "returnByValue": true });
        let wasm = number(&self.call_in(&worker, "Runtime.callFunctionOn", &how)["result"]["value"]);
        TabMemory { heap, wasm }
    }

    /// All memories of WebAssembly that a worker has, as a list.
    fn find_wasm(&mut self, worker: &str) -> Value {
        let memory = json!({ "expression": "WebAssembly.Memory.prototype" });
        let prototype = self.call_in(worker, "Runtime.evaluate", &memory)["result"]["objectId"].take();
        let all = self.call_in(worker, "Runtime.queryObjects", &json!({ "prototypeObjectId": prototype }));
        self.wasm = Some(all["objects"]["objectId"].clone());
        all["objects"]["objectId"].clone()
    }

    fn heap(&mut self, session: &str) -> usize {
        self.call_in(session, "HeapProfiler.collectGarbage", &json!({}));
        number(&self.call_in(session, "Runtime.getHeapUsage", &json!({}))["usedSize"])
    }

    fn attach_worker(&mut self) -> String {
        let how = json!({ "autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true });
        self.call("Target.setAutoAttach", &how);
        let start = Instant::now();
        while self.worker.is_none() {
            // Its answers come in order, and so does what it says by itself.
            self.next("Target.setAutoAttach", start);
        }
        self.worker.clone().expect("a worker")
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let page = self.page.clone();
        self.call_in(&page, method, params)
    }

    /// Says something to a page or a worker, or, without a name, to the browser itself.
    fn call_in(&mut self, session: &str, method: &str, params: &Value) -> Value {
        result(method, &self.ask_in(session, method, params))
    }

    /// What is answered, also if that is an error.
    fn ask_in(&mut self, session: &str, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": params });
        if !session.is_empty() {
            call["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{call}\0").as_bytes()).expect("it reads");
        let start = Instant::now();
        loop {
            let answer = self.next(method, start);
            if answer["id"] == json!(self.calls) {
                return answer;
            }
        }
    }

    /// The next thing that it says; notes a worker that has come.
    fn next(&mut self, method: &str, start: Instant) -> Value {
        let said = self.read(method, start);
        let params = &said["params"];
        if said["method"] == "Target.attachedToTarget" && params["targetInfo"]["type"] == "worker" {
            self.worker = params["sessionId"].as_str().map(str::to_owned);
        }
        said
    }

    fn read(&mut self, method: &str, start: Instant) -> Value {
        let mut part = vec![0; 1 << 16];
        let mut looked = 0;
        loop {
            if let Some(end) = self.heard[looked..].iter().position(|byte| *byte == 0) {
                let mut said: Vec<u8> = self.heard.drain(..=looked + end).collect();
                said.pop();
                return serde_json::from_slice(&said).expect("JSON");
            }
            looked = self.heard.len();
            assert!(start.elapsed() < PATIENCE, "waited in vain for an answer to `{method}`");
            self.program.must_run();
            let mut descriptors = [PollFd::new(&self.answers, PollFlags::IN)];
            let moment = Timespec::try_from(Duration::from_millis(100)).expect("a short time");
            if poll(&mut descriptors, Some(&moment)).expect("a descriptor") > 0 {
                let length = self.answers.read(&mut part).expect("it answers");
                self.heard.extend_from_slice(&part[..length]);
            }
        }
    }
}

fn number(value: &Value) -> usize {
    value.as_f64().expect("a number") as usize
}

fn result(method: &str, answer: &Value) -> Value {
    assert!(answer["error"].is_null(), "`{method}`: {}", answer["error"]);
    answer["result"].clone()
}

/// The picture that [`READ_CANVAS`] tells, once there is one.
pub(super) fn read_canvas(shown: &Value) -> Option<Picture> {
    let mut parts = shown.as_str()?.splitn(3, ' ');
    let mut number = || parts.next()?.parse::<usize>().ok();
    let (width, height) = (number()?, number()?);
    let digits = parts.next()?.as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).expect("a digit") as u8;
    let pixels = digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    Some(Picture::of(width, height, pixels))
}

/// A pipe with a name, open at both ends, so that no end waits for the other to be opened.
fn pipe(home: &Home, name: &str) -> File {
    let path = home.file(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    home.give(&path);
    OpenOptions::new().read(true).write(true).open(&path).expect("a pipe")
}

const NO_PAGE: &str = "Cannot find default execution context";

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

/// Width, height and pixels in hexadecimal digits of the first canvas.
pub(super) const READ_CANVAS: &str = r#"(() => {
    const canvas = document.querySelector("canvas");
    if (!canvas || canvas.width * canvas.height === 0) return null;
    const copy = new OffscreenCanvas(canvas.width, canvas.height);
    const context = copy.getContext("2d");
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const digits = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
    const pixels = [];
    for (let at = 0; at < data.length; at += 4) {
        pixels.push(digits[data[at]], digits[data[at + 1]], digits[data[at + 2]]);
    }
    return `${canvas.width} ${canvas.height} ${pixels.join("")}`;
})()"#;
