//! Why a session is over, in the words of [`Failure`].
//!
//! It decides nothing. Invariant: what a capsule said counts more than how the connection ended.

use noq::ConnectionError;
use web_transport_proto::error_from_http3;

use crate::endpoint::{By, Failure};
use crate::http3::NO_ERROR;

/// Why a session is over when its connection is; `known`: what a capsule, or this side, has said.
pub(in crate::endpoint) fn end(error: &ConnectionError, known: Option<&Failure>) -> Failure {
    if let Some(known) = known {
        return known.clone();
    }
    match Failure::of(error, None) {
        Failure::Closed { code, reason, by: By::Peer } => {
            let otherwise = if code == u64::from(NO_ERROR) { 0 } else { code };
            let code = error_from_http3(code).map_or(otherwise, u64::from);
            Failure::Closed { code, reason, by: By::Peer }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use noq::{ApplicationClose, VarInt};
    use web_transport_proto::error_to_http3;

    use super::*;

    #[test]
    fn what_a_capsule_said_counts_more_than_the_end_of_the_connection() {
        let closed = |code: u64| {
            let error_code = VarInt::from_u64(code).unwrap();
            ConnectionError::ApplicationClosed(ApplicationClose { error_code, reason: Default::default() })
        };
        let code = |failure| match failure {
            Failure::Closed { code, by: By::Peer, .. } => code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code(end(&closed(0x100), None)), 0);
        assert_eq!(code(end(&closed(0x102), None)), 0x102);
        assert_eq!(code(end(&closed(error_to_http3(7)), None)), 7);
        let said = Failure::closed(By::Peer, 5, "said".into());
        assert_eq!(code(end(&closed(0x100), Some(&said))), 5);
    }
}
