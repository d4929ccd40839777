//! Tests the dashboard in a browser, over TCP with a token, while two guests exchange traffic. Screenshots are saved in
//! `target/dashboard`.

mod browser;

use crate::http::{TOKEN, tcp, tcp_with};
use crate::process::softiov;
use crate::survival::{address, attach};
use browser::Browser;
use host::test_support::skipped;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::tempdir;

const TAB: (&str, u32) = ("Tab", 9);
const ENTER: (&str, u32) = ("Enter", 13);
/// Sections of the dashboard, in the order of its links.
const SECTIONS: [&str; 9] =
    ["charts", "topology", "rates", "drops", "interventions", "events", "policy", "port", "capture"];

fn press(browser: &mut Browser, (key, code): (&str, u32)) {
    browser.press(key, code);
}

/// Enters a setting's value in a form by keyboard, and waits for the text `said` below the form.
fn set(browser: &mut Browser, (form, outcome): (&str, &str), field: &str, value: &str, said: &str) {
    browser.value(&format!("document.querySelector('#{form} [name=\"{field}\"]').focus()"));
    browser.value("document.activeElement.select()");
    browser.write(value);
    press(browser, ENTER);
    browser.wait(&format!("document.querySelector('#{outcome}').innerText.includes('{said}')"));
}

fn json(folder: &Path, words: &[&str]) -> Value {
    serde_json::from_str(&softiov(folder, words).out).unwrap()
}

#[test]
fn dashboard_shows_traffic_and_changes_policy_in_a_browser() {
    let folder = tempdir().unwrap();
    let (serve, listen) = tcp(&folder);
    let Some(mut browser) = Browser::start(&format!("http://{listen}/")) else {
        return skipped("the dashboard in a browser", "chromium is not installed (Debian package chromium)");
    };
    let guests = [0, 1].map(|vf| attach(serve.folder(), vf));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // A change of the VF may cut the flow short.
                let _ = guests[0].send_tcp(address(1), 1 << 20);
            }
        });
        let looked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(&mut browser, serve.folder())));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = looked {
            std::panic::resume_unwind(panic);
        }
    });
}

/// A port whose PF a guest drives has no settings, which only the host's PF driver could carry out.
#[test]
fn dashboard_offers_no_settings_of_a_port_that_a_guest_drives() {
    let folder = tempdir().unwrap();
    let (_serve, listen) = tcp_with(&folder, "[[port]]\npf = \"guest\"\n[[port]]\n");
    let Some(mut browser) = Browser::start(&format!("http://{listen}/")) else {
        return skipped("the dashboard in a browser", "chromium is not installed (Debian package chromium)");
    };
    enter(&mut browser);
    browser.wait("document.querySelectorAll('#port-settings input').length > 20");
    assert_eq!(browser.value("document.querySelector('#port-chosen').value"), "pf1");
    browser.wait("document.querySelectorAll('#mirror select').length > 0");
}

/// Enters the token.
fn enter(browser: &mut Browser) {
    browser.wait("!document.querySelector('#token').hidden");
    browser.value("document.querySelector('#token input').focus()");
    browser.write(TOKEN);
    press(browser, ENTER);
}

fn look(browser: &mut Browser, folder: &Path) {
    enter(browser);
    glance(browser, folder);
    // Topology, rates, drops, interventions and events come alive.
    browser.wait("document.querySelectorAll('.vfs li').length == 7");
    browser.wait("document.querySelector('.vfs li').innerText.includes('driver runs')");
    let rate = "parseFloat(document.querySelector('#rates tbody td').innerText.replaceAll(',', ''))";
    browser.wait(&format!("{rate} > 10"));
    browser.wait("document.querySelectorAll('#drops tbody tr').length == 7");
    browser.wait(
        "[...document.querySelectorAll('#interventions td')].some((cell) => parseFloat(cell.innerText) > 0)",
    );
    browser.wait("document.querySelector('#events ol').innerText.includes('pf0vf0')");
    by_keyboard(browser);
    policy(browser, folder);
    port(browser, folder);
    mirror(browser, folder);
    capture(browser, folder);
    pictures(browser);
}

/// Checks the dashboard's order of focus: the first Tab reaches the link to the content, and the following ones each
/// section.
fn by_keyboard(browser: &mut Browser) {
    browser.value("document.activeElement.blur(), scrollTo(0, 0)");
    browser.value("document.body.tabIndex = -1, document.body.focus()");
    press(browser, TAB);
    assert_eq!(browser.value("document.activeElement.className"), "skip");
    let mut seen = Vec::new();
    for _ in SECTIONS {
        press(browser, TAB);
        seen.push(browser.value("document.activeElement.hash"));
    }
    assert_eq!(seen, SECTIONS.map(|section| format!("#{section}")));
}

/// Follows the link to a section with a form, which opens the form.
fn open(browser: &mut Browser, section: &str) {
    assert_eq!(browser.value(&format!("document.querySelector('#{section} > details').open")), false);
    browser.value(&format!("document.querySelector('nav a[href=\"#{section}\"]').focus()"));
    press(browser, ENTER);
    browser.wait(&format!("document.querySelector('#{section} > details').open"));
}

/// Checks the overview at the top of the dashboard: ports, VFs, charts of the traffic, and a quarantine, which is shown
/// as trouble until it ends.
fn glance(browser: &mut Browser, folder: &Path) {
    let tile = |number: u8| format!("document.querySelector('#glance > :nth-child({number})').innerText");
    browser.wait(&format!("{}.includes('1 of 1 up')", tile(1)));
    browser.wait(&format!("{}.includes('2 of 7 in use')", tile(2)));
    browser.wait(
        "parseFloat(document.querySelectorAll('#glance .value')[2].innerText.replaceAll(',', '')) > 10",
    );
    let quarantine = |on: &str| softiov(folder, &["vf", "set", "pf0vf5", "--quarantine", on]).status;
    assert_eq!(quarantine("on"), Some(0));
    browser.wait(&format!("{}.includes('pf0vf5 quarantined: administrator')", tile(4)));
    browser.wait("/^\\(\\d+\\) SoftIOV$/.test(document.title)");
    assert_eq!(quarantine("off"), Some(0));
    browser.wait(&format!("!{}.includes('pf0vf5')", tile(4)));
    browser.wait("document.querySelectorAll('#charts figure').length == 4");
    browser.wait("document.querySelector('#charts path.line0').getAttribute('d').split('L').length > 2");
    let told = browser.value("document.querySelector('#charts .plot').getAttribute('aria-label')");
    assert!(told.as_str().unwrap().starts_with("Throughput, Mb/s: to guests "), "{told}");
}

fn policy(browser: &mut Browser, folder: &Path) {
    let form = ("settings", "outcome");
    open(browser, "policy");
    browser.wait("document.querySelectorAll('#settings input, #settings select').length > 15");
    set(browser, form, "vlan", "5000", "1 to 4095");
    set(browser, form, "vlan", "0", "nothing differs");
    set(browser, form, "max_tx_rate", "500", "max_tx_rate set");
    set(browser, form, "ips", "10.0.0.5, fd00:1::/64", "ips set");
    let settings = &json(folder, &["vf", "show", "pf0vf0", "--json"])["settings"];
    assert_eq!(settings["ips"], serde_json::json!(["10.0.0.5", "fd00:1::/64"]));
    set(browser, form, "ips", "any", "ips set");
    assert_eq!((&settings["max_tx_rate"], &settings["vlan"]), (&500.into(), &0.into()));
}

/// Changes a port's storm control, thresholds and number of VFs on the dashboard. A refused value is reported and
/// changes nothing.
fn port(browser: &mut Browser, folder: &Path) {
    let form = ("port-settings", "port-outcome");
    open(browser, "port");
    browser.wait("document.querySelectorAll('#port-settings input').length > 20");
    set(browser, form, "storm.interval", "5000", "1000");
    assert_eq!(browser.value("document.querySelector('#port-outcome').className"), "bad");
    set(browser, form, "storm.interval", "200", "storm.interval set");
    set(browser, form, "limits.mailbox.warn", "150", "limits.mailbox.warn set");
    set(browser, form, "vfs", "6", "vfs set");
    browser.value("document.querySelector('#port-settings [name=link_local]').value = 'forward'");
    browser.value("document.querySelector('#port-settings').requestSubmit()");
    browser.wait("document.querySelector('#port-outcome').innerText.includes('link_local set')");
    let settings = &json(folder, &["port", "show", "pf0", "--json"])["settings"];
    assert_eq!(settings["storm"]["interval"], 200);
    assert_eq!(settings["limits"]["mailbox"], json!({"warn": 150, "throttle": 1000, "quarantine": 0}));
    assert_eq!(settings["vfs"], 6);
}

/// Writes a mirror rule on the dashboard and removes it. A rule that copies nothing is refused.
fn mirror(browser: &mut Browser, folder: &Path) {
    let form = ("mirror", "mirror-outcome");
    let rules = || json(folder, &["port", "show", "pf0", "--json"])["settings"]["mirror"].clone();
    browser.wait("document.querySelectorAll('#mirror [name=\"1.vfs\"]').length == 6");
    browser.value("document.querySelector('#mirror [name=\"1.to\"]').value = '2'");
    set(browser, form, "1.vlans", "", "mirror");
    assert_eq!(browser.value("document.querySelector('#mirror-outcome').className"), "bad");
    assert_eq!(rules(), Value::Null);
    browser.value("document.querySelector('#mirror [name=\"1.vfs\"][value=\"0\"]').click()");
    browser.value("document.querySelector('#mirror [name=\"1.uplink\"]').value = 'both'");
    set(browser, form, "1.vlans", "10,20-29", "mirror rule 1 set");
    let rule = json!({"1": {"to": 2, "vfs": [0], "uplink": "both", "vlans": "10,20-29"}});
    assert_eq!(rules(), rule);
    set(browser, form, "1.vlans", "10,20-29", "nothing differs");
    browser.value("document.querySelector('#mirror [name=\"1.to\"]').value = ''");
    set(browser, form, "1.vlans", "", "mirror rule 1 set");
    assert_eq!(rules(), Value::Null);
}

/// Captures for a second on the dashboard, and checks the file that the browser saves. An invalid filter is refused.
fn capture(browser: &mut Browser, folder: &Path) {
    let kept = folder.join("pf0vf1.pcapng");
    open(browser, "capture");
    browser.ask("Page.setDownloadBehavior", &json!({"behavior": "allow", "downloadPath": folder}));
    browser.value("document.querySelector('#capture [name=at]').value = 'pf0vf1'");
    browser.value("document.querySelector('#capture [name=seconds]').value = 1");
    browser.value("document.querySelector('#capture [name=filter]').focus()");
    browser.write("tcp prot 1");
    press(browser, ENTER);
    browser.wait("document.querySelector('#capture p').innerText.startsWith('filter: ')");
    browser.value("document.activeElement.select()");
    browser.write("tcp");
    press(browser, ENTER);
    browser.wait("document.querySelector('#capture p').innerText.startsWith('pf0vf1.pcapng: ')");
    let deadline = Instant::now() + Duration::from_secs(240);
    while !kept.exists() {
        assert!(Instant::now() < deadline, "the browser has saved no capture");
        std::thread::sleep(Duration::from_millis(100));
    }
    let file = std::fs::read(kept).unwrap();
    assert!(file.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) && file.len() > 10_000, "{} bytes", file.len());
}

fn pictures(browser: &mut Browser) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../dashboard");
    std::fs::create_dir_all(&kept).unwrap();
    let mut pages = Vec::new();
    for (scheme, width) in [("light", 1600), ("dark", 1600), ("light", 360), ("dark", 360), ("light", 1000)] {
        browser.show(scheme, width);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} pixels do not fit into {width}");
        pages.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        browser.shoot(&kept.join(format!("{scheme}-{width}.png")));
    }
    assert!(
        pages[0] == pages[2] && pages[1] == pages[3] && pages[0] == pages[4] && pages[0] != pages[1],
        "light is not dark: {pages:?}"
    );
}
