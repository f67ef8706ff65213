//! Any bytes at a proxy that allows one name, which leads nowhere: no panic, no other name looked up, no answer but a
//! refusal, and the next client is served.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::event::{Collector, RuleText};
use sandbox_runtime::ir::Rule;
use sandbox_runtime::proxy::{InForce, Limits, Lookup, Means, Resolve, Rules, serve};
use sandbox_runtime::sets::host::Name;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use sandbox_runtime::{bind, host, resolve};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Knows no address.
struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, name: &Name) -> Lookup {
        assert_eq!(name.as_str(), "allowed.test", "was looked up, and no rule allows it");
        Box::pin(async { Err(io::ErrorKind::NotFound.into()) })
    }
}

const POLICY: &str = "srt 1\n\ndefault read deny\n\nallow connect allowed.test:80\n";

/// A proxy for the whole run: a state that one input leaves behind is a finding too.
struct Served {
    runtime: Runtime,
    at: std::net::SocketAddr,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listener");
    let at = listener.local_addr().expect("its address");
    let limits = Limits { drain: Duration::from_millis(10), ..Limits::STANDARD };
    let in_force = Arc::new(InForce::new(Arc::new(rules())));
    let means = Means { resolver: Arc::new(Nobody), upstream: None, limits };
    runtime.spawn(serve(listener, in_force, Arc::new(Collector::default()), means));
    Served { runtime, at }
});

fn rules() -> Rules {
    let mut sources = Sources::default();
    let given = sources.add("fuzz.policy", POLICY);
    let options = resolve::Options { system: System::Linux, defines: BTreeMap::new() };
    let (policy, _) = resolve::resolve(&[given], &mut sources, &NoFiles, &options);
    let (policy, _) = bind::bind(policy.expect("the policy resolves"), &host::nominal());
    let text =
        |_: &Rule| RuleText { file: "fuzz.policy".into(), line: 5, text: "allow connect allowed.test:80".into() };
    Rules { policy: policy.expect("the policy binds"), texts: Box::new(text) }
}

struct NoFiles;

impl resolve::Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<resolve::Text> {
        Err(io::ErrorKind::NotFound.into())
    }
}

async fn say(at: std::net::SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(at).await.expect("the proxy accepts");
    // It may close while this still talks.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await.expect("it ends");
    answer
}

fuzz_target!(|bytes: &[u8]| {
    let served = &*SERVED;
    served.runtime.block_on(async {
        let answer = say(served.at, bytes).await;
        let text = String::from_utf8_lossy(&answer);
        for line in text.lines().filter(|line| line.starts_with("HTTP/1.")) {
            // 100 asks for content that the refusal after it does not need.
            let refused = [" 100 ", " 400 ", " 403 ", " 414 ", " 431 ", " 501 ", " 502 ", " 505 "];
            assert!(refused.iter().any(|status| line.contains(status)), "{text}");
        }
        let answer = say(served.at, b"GET http://x.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        // Half a close may end it before it has answered; that it accepts is what counts.
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 403 "));
    });
});
