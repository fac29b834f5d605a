//! The object that programs call: `org.kde.StatusNotifierWatcher`.
//!
//! It starts the thread of an icon; what is read of it is not its matter.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use zbus::Connection;
use zbus::fdo;
use zbus::message::Header;

use super::icons::{Added, Icons};
use crate::tray::names::ITEM_PATH;
use crate::tray::program;
use crate::tray::said::Said;
use crate::tray::teller::Teller;

/// See the module.
pub(super) struct Server {
    pub(super) icons: Arc<Icons>,
    pub(super) teller: Teller<Said>,
}

#[zbus::interface(name = "org.kde.StatusNotifierWatcher", spawn = false, introspection_docs = false)]
impl Server {
    /// Of the name of a program, or of an object of the caller's.
    #[expect(clippy::needless_pass_by_value, reason = "it is so given")]
    fn register_status_notifier_item(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
        service: &str,
    ) -> fdo::Result<()> {
        let failed = |why: &str| fdo::Error::Failed(why.into());
        let sender = header.sender().ok_or_else(|| failed("it has no sender"))?.as_str();
        let (name, path) = if service.starts_with('/') { (sender, service) } else { (service, ITEM_PATH) };
        let (place, orders) = match self.icons.add(name, path) {
            Added::New(place, orders) => (place, orders),
            Added::Before => return Ok(()),
            Added::TooMany => return Err(fdo::Error::LimitsExceeded("there are too many icons".into())),
        };
        let (connection, teller, icons) = (connection.clone(), self.teller.clone(), Arc::clone(&self.icons));
        let thread = std::thread::Builder::new().name("tray-icon".into());
        let id = place.id;
        let work = move || {
            program::work(&connection, &place, &orders, &teller);
            icons.remove(|gone| gone.id == id);
        };
        thread.spawn(work).map(drop).map_err(|error| {
            self.icons.remove(|gone| gone.id == id);
            failed(&error.to_string())
        })
    }

    /// The session shows icons by itself.
    #[expect(clippy::unused_self, reason = "it is a method of the interface")]
    fn register_status_notifier_host(&self, _service: &str) {}

    #[zbus(property(emits_changed_signal = "false"))]
    fn registered_status_notifier_items(&self) -> Vec<String> {
        self.icons.places().iter().map(|place| format!("{}{}", place.name, place.path)).collect()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn is_status_notifier_host_registered(&self) -> bool {
        self.icons.is_there.load(Ordering::Acquire)
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn protocol_version(&self) -> i32 {
        0
    }

    #[zbus(signal)]
    async fn status_notifier_host_registered(
        emitter: &zbus::object_server::SignalEmitter<'_>,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn status_notifier_host_unregistered(
        emitter: &zbus::object_server::SignalEmitter<'_>,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn status_notifier_item_registered(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        service: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn status_notifier_item_unregistered(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        service: &str,
    ) -> zbus::Result<()>;
}
