//! Names below which strangers have names: what registries sell, and what hosters rent out.
//!
//! The public suffix list (publicsuffix.org), its private section included, as the crate `psl` embeds it, and the few
//! domains of hosters below which it lists suffixes without listing the domain itself.

use crate::sets::host::{Label, Pattern};

/// Domains that hold suffixes of the list: a wildcard over one of them is a wildcard over each. The sources are the hosters'
/// own pages on the names of their endpoints.
const HOLD_SUFFIXES: &[(&str, &str)] = &[
    ("amazonaws.com", "Amazon S3: buckets are names below s3.amazonaws.com and s3.REGION.amazonaws.com"),
    ("amazonaws.com.cn", "Amazon S3 in China: the same"),
    ("on.aws", "AWS Lambda: function URLs are names below lambda-url.REGION.on.aws"),
    ("windows.net", "Azure: accounts are names below blob.core.windows.net and others"),
    ("azure.com", "Azure: virtual machines are names below REGION.cloudapp.azure.com"),
    ("core.windows.net", "Azure Storage: accounts are names below blob.core.windows.net and others"),
    ("googleapis.com", "Cloud Storage: a bucket is a name below storage.googleapis.com"),
    ("storage.googleapis.com", "Cloud Storage: a bucket is a name below it"),
    ("digitaloceanspaces.com", "DigitalOcean Spaces: a space is a name below REGION.digitaloceanspaces.com"),
    ("linodeobjects.com", "Linode: a bucket is a name below REGION.linodeobjects.com"),
    ("aliyuncs.com", "Alibaba Cloud OSS: a bucket is a name below oss-REGION.aliyuncs.com"),
    ("myqcloud.com", "Tencent Cloud: a bucket is a name below cos.REGION.myqcloud.com"),
    ("cloudflarestorage.com", "Cloudflare R2: an account is a name below r2.cloudflarestorage.com"),
    ("ngrok.io", "ngrok: a tunnel is a name below it"),
    ("trycloudflare.com", "Cloudflare: a quick tunnel is a name below it"),
    ("sslip.io", "sslip.io: a name below it is any address"),
    ("nip.io", "nip.io: a name below it is any address"),
];

/// What strangers may have under a pattern, if anything.
pub(in crate::lint) fn open(pattern: &Pattern) -> Option<String> {
    let Pattern::Labels { below, labels } = pattern else {
        return (*pattern == Pattern::Any).then(|| "every host".to_owned());
    };
    // The labels after the last one that is not fixed: what is below them is anyone's, if they are a suffix.
    let free = labels.iter().rposition(|label| matches!(label, Label::Glob(_)));
    if !below && free.is_none() {
        return None;
    }
    let fixed: Vec<&str> = labels[free.map_or(0, |free| free + 1)..]
        .iter()
        .filter_map(|label| if let Label::Literal(label) = label { Some(label.as_str()) } else { None })
        .collect();
    let name = fixed.join(".");
    if name.is_empty() {
        return Some("names under every top-level domain".to_owned());
    }
    if HOLD_SUFFIXES.iter().any(|(domain, _)| *domain == name) {
        return Some(format!("names below `{name}`, where anyone can rent one"));
    }
    // `*.ck` in the list makes a suffix of every name below `ck`.
    let verb = match kind(&name).or_else(|| kind(&format!("any.{name}")))? {
        psl::Type::Icann => "register",
        psl::Type::Private => "rent",
    };
    Some(format!("names below `{name}`, where anyone can {verb} one"))
}

/// The section of the list in which a name stands as a suffix.
fn kind(name: &str) -> Option<psl::Type> {
    psl::suffix(name.as_bytes()).filter(|suffix| suffix.as_bytes() == name.as_bytes())?.typ()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn said(pattern: &str) -> Option<String> {
        open(&Pattern::parse(pattern).unwrap())
    }

    #[test]
    fn suffixes_that_are_sold_or_rented() {
        for registered in ["*.com", "*.co.uk", "*.xn--p1ai", "*.kawasaki.jp", "api-*.com", "x.a*.co.uk", "*.ck"] {
            assert!(said(registered).is_some_and(|what| what.contains("register")), "{registered}");
        }
        for rented in [
            "*.github.io",
            "*.s3.amazonaws.com",
            "*.s3.eu-west-1.amazonaws.com",
            "my*.s3.amazonaws.com",
            "*.pages.dev",
            "*.workers.dev",
            "*.vercel.app",
            "*.herokuapp.com",
            "*.blob.core.windows.net",
            "*.cloudfront.net",
            "*.web.app",
            "*.r2.dev",
            "*.ngrok-free.app",
        ] {
            assert!(said(rented).is_some_and(|what| what.contains("rent")), "{rented}");
        }
        for (domain, source) in HOLD_SUFFIXES {
            assert!(said(&format!("*.{domain}")).is_some() && !source.is_empty());
        }
        assert_eq!(said("*").as_deref(), Some("every host"));
        assert_eq!(said("www.c*").as_deref(), Some("names under every top-level domain"));
    }

    #[test]
    fn names_of_one_owner() {
        for own in [
            "*.example.com",
            "*.example.co.uk",
            "*.octocat.github.io",
            "api-*.example.com",
            "github.io",
            "*.corp",
            "*.internal",
            "*.ts.example.internal",
            "*.www.ck",
        ] {
            assert_eq!(said(own), None, "{own}");
        }
    }
}
