//! Certificates that a user has chosen, and what makes the other side the right one.

use std::sync::Arc;

use wayferry_host::carriers::identity;
use wayferry_net::{Fingerprint, Identity, Roots, Trust};

use crate::error::Error;
use crate::flags::{AttachFlags, HostFlags};
use crate::tell::{OwnEvent, tell};

/// The identity that a host was given, or a fresh one.
pub(crate) fn host_identity(host: &HostFlags) -> Result<Arc<Identity>, Error> {
    let (Some(cert), Some(key)) = (&host.cert, &host.key) else { return Ok(identity()?) };
    Identity::load(cert, key).map(Arc::new).map_err(|error| Error::OwnCertificate(error.to_string()))
}

/// What makes the host of a ticket the right one. Says which authorities may vouch for it, if any.
pub(crate) fn trust(attach: &AttachFlags, pinned: Fingerprint) -> Result<Trust, Error> {
    let Some(name) = &attach.tls_name else { return Ok(pinned.into()) };
    let roots = Roots::load(attach.ca.as_deref()).map_err(|error| Error::Authorities(error.to_string()))?;
    tell(&OwnEvent::TrustNamed { name, roots: &roots.to_string() });
    Trust::named(name, roots)
        .map_err(|error| Error::usage(format!("cannot use `--tls-name {name}`: {error}")))
}
