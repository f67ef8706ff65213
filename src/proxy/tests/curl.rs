//! A real client.

use super::harness::*;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Runs curl through the proxy and returns its exit status and output; `None` where there is no curl.
async fn curl(proxy: SocketAddr, arguments: &[&str]) -> Option<(Option<i32>, String)> {
    // The ban on starting programs is about the product, not about its tests.
    #[allow(clippy::disallowed_methods)]
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--max-time",
        "20",
        "--noproxy",
        "",
        "--proxy",
        &format!("http://{proxy}"),
    ]);
    command.args(arguments).env_clear().stdin(Stdio::null());
    if let Some(path) = option_env!("PATH") {
        command.env("PATH", path);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    match output {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            Some((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
        }
        Err(error) => {
            eprintln!("SKIPPED: curl can't be run here: {error}");
            None
        }
    }
}

#[tokio::test]
async fn curl_reaches_what_is_allowed_and_shows_why_not() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let port = at.port();
    let Some((status, text)) = curl(proxy.at, &[&format!("http://a.test:{port}/x")]).await else { return };
    assert_eq!(status, Some(0), "{text}");
    assert!(text.starts_with("GET /x HTTP/1.1\r\n"), "{text}");
    assert_eq!(field(&text, "host"), Some(format!("a.test:{port}").as_str()));
    assert_eq!(field(&text, "proxy-connection"), None);

    let (status, text) = curl(proxy.at, &[&format!("http://b.test:{port}/")]).await.unwrap();
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("no rule allows it\n"), "{text}");

    let (status, text) = curl(proxy.at, &["--fail", &format!("http://127.0.0.1:{port}/")]).await.unwrap();
    assert_eq!(status, Some(0), "{text}");
}

#[tokio::test]
async fn curl_tunnels_through_connect() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let allowed = format!("http://a.test:{}/x", at.port());
    let Some((status, text)) = curl(proxy.at, &["--proxytunnel", &allowed]).await else { return };
    assert_eq!(status, Some(0), "{text}");
    assert!(text.starts_with("GET /x HTTP/1.1\r\n"), "{text}");

    let (status, text) = curl(proxy.at, &["--verbose", "https://evil.test/"]).await.unwrap();
    assert_eq!(status, Some(56), "{text}");
    assert!(text.contains("response 403"), "{text}");
    assert!(
        text.contains("Proxy-Status: srt; error=http_request_denied") || text.contains("proxy-status: srt;"),
        "{text}"
    );
}

#[tokio::test]
async fn curl_uploads_with_expect() {
    let at = echo().await;
    let proxy = to(at).start().await;
    let url = format!("http://a.test:{}/", at.port());
    let content = "x".repeat(1000);
    let Some((status, text)) = curl(proxy.at, &["--header", "Expect: 100-continue", "--data", &content, &url]).await
    else {
        return;
    };
    assert_eq!(status, Some(0), "{text}");
    assert!(text.ends_with(&content), "{text}");
}
