//! The machine's own name servers, as /etc/resolv.conf names them (resolv.conf(5)), after its hosts file (hosts(5)).
//!
//! Not the C library's look-up: that loads modules of the machine's C library into the process, which one that is linked
//! statically may not survive. So what only such a module knows (mDNS, a directory service) is not found. Nothing is
//! remembered from one look-up to the next: the resolver inside the sandbox does that, for as long as an answer holds.

use super::dial::{Lookup, Resolve};
use crate::event::lock;
use crate::sets::host::Name;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// After this long the two files are read anew: a machine may change its network while a command runs.
const FRESH: Duration = Duration::from_secs(5);

/// When the two files were read, and what they say.
type Read = Mutex<Option<(Instant, Arc<TokioResolver>)>>;

/// Asks these name servers.
pub struct System {
    permits: Arc<Semaphore>,
    read: Arc<Read>,
}

impl System {
    /// A resolver that asks for `lookups` names at once.
    pub fn new(lookups: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(lookups)), read: Arc::default() }
    }
}

/// What the two files say now, or said a moment ago.
fn current(read: &Read) -> io::Result<Arc<TokioResolver>> {
    let mut read = lock(read);
    if let Some((at, resolver)) = &*read
        && at.elapsed() < FRESH
    {
        return Ok(Arc::clone(resolver));
    }
    let mut builder = TokioResolver::builder_tokio().map_err(io::Error::other)?;
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Always;
    options.cache_size = 0;
    let resolver = Arc::new(builder.build().map_err(io::Error::other)?);
    *read = Some((Instant::now(), Arc::clone(&resolver)));
    Ok(resolver)
}

impl Resolve for System {
    fn resolve(&self, name: &Name) -> Lookup {
        // A name with a dot is itself: of what a search list would make of it, nothing was decided. One label alone is a name of
        // the machine's own network, as resolv.conf(5) has it.
        let mut name = name.as_str().to_owned();
        if name.contains('.') {
            name.push('.');
        }
        let (permits, read) = (Arc::clone(&self.permits), Arc::clone(&self.read));
        Box::pin(async move {
            let _permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            match current(&read)?.lookup_ip(name).await {
                Ok(found) => Ok(found.iter().collect()),
                Err(error) if error.is_nx_domain() || error.is_no_records_found() => {
                    Err(io::Error::new(io::ErrorKind::NotFound, error))
                }
                Err(error) => Err(io::Error::other(error)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::IpAddr;

    #[tokio::test]
    async fn the_hosts_file_is_asked() {
        let name = Name::parse("localhost").unwrap();
        let found = System::new(1).resolve(&name).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
