//! Runs a Chromium that a test controls over the DevTools protocol. The messages pass through two named pipes, to which
//! a shell connects Chromium.

use serde_json::{Value, json};
use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of each operation of the browser.
const PATIENCE: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(100);

const START: &str = r#"exec chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars \
    --force-color-profile=srgb --remote-debugging-pipe --user-data-dir="$FOLDER/profile" about:blank \
    3<"$FOLDER/to" 4>"$FOLDER/from" >/dev/null 2>&1"#;

/// Chromium with one page, which a test controls.
pub(super) struct Browser {
    child: Child,
    to: File,
    heard: Receiver<Value>,
    session: Option<String>,
    number: u64,
    _folder: TempDir,
}

impl Browser {
    /// Starts the browser, or returns `None` if Chromium is not installed.
    pub(super) fn start(url: &str) -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).find(|folder| folder.join("chromium").is_file())?;
        let folder = tempfile::tempdir().unwrap();
        for name in ["to", "from"] {
            assert!(Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success());
        }
        let mut command = Command::new("bash");
        let child =
            command.args(["-c", START]).env("FOLDER", folder.path()).stdin(Stdio::null()).spawn().unwrap();
        // Each open waits until the browser has opened its end.
        let to = File::create(folder.path().join("to")).unwrap();
        let from = BufReader::new(File::open(folder.path().join("from")).unwrap());
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for message in from.split(0) {
                let Ok(message) = message else { return };
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, to, heard, session: None, number: 0, _folder: folder };
        let page = browser.ask("Target.createTarget", &json!({"url": url}))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", &json!({"targetId": page, "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.ask("Runtime.enable", &json!({}));
        Some(browser)
    }

    /// Sends a DevTools command to the browser, and returns the command's result. An exception on the page fails the
    /// test.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut reply = self.heard.recv_timeout(PATIENCE).expect("the browser answers");
            assert_ne!(reply["method"], "Runtime.exceptionThrown", "{reply:#}");
            if reply["id"] == self.number {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].take();
            }
        }
    }

    /// Returns the value of a JavaScript expression on the page.
    #[track_caller]
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut told = self.ask("Runtime.evaluate", &params);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told:#}");
        told["result"]["value"].take()
    }

    /// Waits until a JavaScript expression is true on the page. Elements in the expression need not exist yet.
    #[track_caller]
    pub(super) fn wait(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        let question =
            format!("(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()");
        while self.value(&question) != true {
            if Instant::now() > deadline {
                let page = self.value("document.body.innerText");
                panic!("never true: {expression}\n{}", page.as_str().unwrap_or_default());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Presses and releases a key that is not a letter.
    pub(super) fn press(&mut self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let params =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
            self.ask("Input.dispatchKeyEvent", &params);
        }
    }

    /// Types a text into the focused element.
    pub(super) fn write(&mut self, text: &str) {
        self.ask("Input.insertText", &json!({"text": text}));
    }

    /// Sets the colour scheme (`light` or `dark`) that the page shows, and its width in pixels.
    pub(super) fn show(&mut self, scheme: &str, width: u32) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"features": features}));
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600});
        self.ask("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Saves a screenshot of the whole page to `file`.
    pub(super) fn shoot(&mut self, file: &Path) {
        let told = self.ask("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
        let mut decode = Command::new("base64");
        let picture = File::create(file).unwrap();
        let mut decode = decode.arg("-d").stdin(Stdio::piped()).stdout(picture).spawn().unwrap();
        let data = told["data"].as_str().unwrap();
        decode.stdin.take().unwrap().write_all(data.as_bytes()).unwrap();
        assert!(decode.wait().unwrap().success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends its helpers; its files are removed with its folder.
        let close = json!({"id": 0, "method": "Browser.close"});
        let _ = self.to.write_all(format!("{close}\0").as_bytes());
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
