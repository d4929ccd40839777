//! Dashboard: a web page that uses the control interface like any other client. Its files are part of the program and
//! load nothing from other hosts (`main.js` is the page itself).

use super::context::ControlHandlerContext;
use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::routing::get;

/// Media type of the dashboard's scripts.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, media type and text of each file of the dashboard.
const FILES: [(&str, &str, &str); 16] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_str!("style.css")),
    ("/page/main.js", SCRIPT, include_str!("main.js")),
    ("/page/api.js", SCRIPT, include_str!("api.js")),
    ("/page/view.js", SCRIPT, include_str!("view.js")),
    ("/page/history.js", SCRIPT, include_str!("history.js")),
    ("/page/glance.js", SCRIPT, include_str!("glance.js")),
    ("/page/charts.js", SCRIPT, include_str!("charts.js")),
    ("/page/topology.js", SCRIPT, include_str!("topology.js")),
    ("/page/rates.js", SCRIPT, include_str!("rates.js")),
    ("/page/fields.js", SCRIPT, include_str!("fields.js")),
    ("/page/editor.js", SCRIPT, include_str!("editor.js")),
    ("/page/policy.js", SCRIPT, include_str!("policy.js")),
    ("/page/mirror.js", SCRIPT, include_str!("mirror.js")),
    ("/page/capture.js", SCRIPT, include_str!("capture.js")),
    ("/page/events.js", SCRIPT, include_str!("events.js")),
];
/// Content-Security-Policy of the dashboard: a browser loads nothing from other hosts, runs no inline script, and
/// shows the page in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the routes of the dashboard's files. Requests for these files need no token, because the files contain
/// nothing about the host.
pub(super) fn routes() -> Router<ControlHandlerContext> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        let headers = [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-cache"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        router.route(path, get(move || async move { (headers, text) }))
    })
}

#[cfg(test)]
mod tests {
    use super::FILES;

    #[test]
    fn dashboard_page_loads_from_no_other_host() {
        for (path, _, text) in FILES {
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!elsewhere.contains("//www") && !elsewhere.contains("https://"), "{path}");
            assert!(!elsewhere.contains("innerHTML"), "{path}: data of the host could become markup");
        }
        let named = |path: &str| FILES.iter().any(|(known, ..)| *known == path);
        let (_, _, index) = FILES[0];
        for part in index.split("\"/page/").skip(1) {
            assert!(named(&format!("/page/{}", part.split('"').next().unwrap())), "{part}");
        }
    }
}
