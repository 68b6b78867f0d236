// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A headless Chromium that shows a page, driven through the DevTools protocol. The protocol goes through two pipes, so no port is opened.

use crate::paths::find_tool;
use crate::tool::temporary_directory;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Names of the browser, the smallest first.
const NAMES: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// A running browser with one page.
pub struct Browser {
    child: Child,
    commands: File,
    answers: BufReader<File>,
    session: Option<String>,
    last: u64,
    /// What the page did since it was opened, as the protocol reports it.
    pub events: Vec<Value>,
    _profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    let result = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(result, 0, "pipe2: {}", std::io::Error::last_os_error());
    // SAFETY: the call made these two descriptors, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) }
}

impl Browser {
    /// Starts a browser, or returns why that is not possible.
    ///
    /// # Errors
    /// When none is installed.
    ///
    /// # Panics
    /// If an installed browser does not start.
    pub fn start() -> Result<Self, String> {
        let Some(program) = NAMES.iter().find_map(|name| find_tool(name)) else {
            return Err(format!("not installed: {} (`make deps` installs it)", NAMES[0]));
        };
        let profile = temporary_directory();
        let ((theirs_in, ours_out), (ours_in, theirs_out)) = (pipe(), pipe());
        let (read, write) = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
        let mut command = Command::new(program);
        command
            .args(["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: between fork and exec only async-signal-safe calls: fcntl and dup2. Chromium expects its commands on 3 and answers on 4. Either of
        // ours may have these numbers, so both move out of the way first.
        unsafe {
            command.pre_exec(move || {
                let (read, write) = (libc::fcntl(read, libc::F_DUPFD, 10), libc::fcntl(write, libc::F_DUPFD, 10));
                if read < 0 || write < 0 || libc::dup2(read, 3) < 0 || libc::dup2(write, 4) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().map_err(|error| format!("cannot start the browser: {error}"))?;
        drop((theirs_in, theirs_out));
        let (commands, answers) = (File::from(ours_out), BufReader::new(File::from(ours_in)));
        let mut browser = Self { child, commands, answers, session: None, last: 0, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Ok(browser)
    }

    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.answers.read_until(0, &mut message).expect("the browser answers");
        assert_eq!(message.pop(), Some(0), "the browser has ended");
        serde_json::from_slice(&message).expect("JSON")
    }

    /// Calls a method of the protocol and returns its result.
    ///
    /// # Panics
    /// If the browser refuses it, or has ended.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser reads");
        loop {
            let answer = self.next();
            if answer["id"] == json!(self.last) {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, page: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    /// If it throws.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Presses a key, as a person does. `shift`: with the Shift key.
    pub fn press(&mut self, key: &str, shift: bool) {
        let text = if key.chars().count() == 1 {
            json!(key)
        } else if key == "Enter" {
            json!("\r")
        } else {
            Value::Null
        };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        let modifiers = if shift { 8 } else { 0 };
        let mut down = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers});
        if !text.is_null() {
            down["text"] = text;
        }
        self.call("Input.dispatchKeyEvent", down);
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}));
    }

    /// Sets the width of the window in px, and light or dark colours.
    pub fn show(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let media = json!({"media": "screen", "features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// A picture of the whole page, as PNG in base64.
    pub fn picture(&mut self) -> String {
        let parameters = json!({"format": "png", "captureBeyondViewport": true});
        let height = self.value("document.documentElement.scrollHeight").as_f64().unwrap_or(900.0).min(12000.0);
        let width = self.value("innerWidth").as_f64().unwrap_or(800.0);
        let mut parameters = parameters;
        parameters["clip"] = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        self.call("Page.captureScreenshot", parameters)["data"].as_str().unwrap_or_default().to_owned()
    }

    /// The addresses that the page asked for, other than its own file, and what it complained about: exceptions, errors and refusals.
    pub fn complaints(&self) -> Vec<String> {
        let one = |event: &Value| {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    let url = parameters["request"]["url"].as_str().unwrap_or_default();
                    let is_own = url.starts_with("file://") && parameters["type"] == "Document";
                    (!is_own).then(|| format!("request: {url}"))
                }
                "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled" => Some(parameters.to_string()),
                _ => None,
            }
        };
        self.events.iter().filter_map(one).collect()
    }
}
