//! Filters of the Windows Filtering Platform: all of a policy's in one transaction, or none; taken away by their keys.
//!
//! They outlive this process on purpose: whatever ends it, what the command could not reach it still cannot. They do not outlive
//! the machine's run, and the next run of `srt` takes away what was left.

use super::os::{Local, check, done, error, wide};
use super::read::{Condition, Filter, Filters, Value};
use std::io;
use std::net::Ipv4Addr;
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{
    FWP_E_ALREADY_EXISTS, FWP_E_FILTER_NOT_FOUND, FWP_E_IN_USE, FWP_E_PROVIDER_NOT_FOUND, FWP_E_SUBLAYER_NOT_FOUND,
    HANDLE,
};
use windows_sys::Win32::NetworkManagement::WindowsFilteringPlatform as wfp;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::PSECURITY_DESCRIPTOR;
use windows_sys::Win32::System::Rpc::RPC_C_AUTHN_WINNT;
use windows_sys::core::GUID;

/// A session with the platform's engine.
#[derive(Debug)]
pub struct Engine(HANDLE);

impl Drop for Engine {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: opened by us, and closed once.
        unsafe { wfp::FwpmEngineClose0(self.0) };
    }
}

impl Engine {
    /// Opens a session; that takes the rights of an administrator.
    ///
    /// # Errors
    /// Whatever opening fails with.
    #[allow(unsafe_code)]
    pub fn open() -> io::Result<Self> {
        let mut engine = null_mut();
        // SAFETY: of the local machine, as whoever we are; the call fills in a handle that is ours to close.
        check(unsafe { wfp::FwpmEngineOpen0(null(), RPC_C_AUTHN_WINNT, null(), null(), &raw mut engine) })?;
        Ok(Self(engine))
    }

    /// Takes away filters of an earlier run, and adds these: both, or neither.
    ///
    /// # Errors
    /// The first thing that fails; nothing is changed then.
    pub fn replace(&self, before: &[String], filters: &Filters) -> io::Result<()> {
        let own: Vec<String> = filters.filters.iter().map(|filter| filter.filter_key.clone()).collect();
        self.transaction(|| {
            self.delete(before)?;
            self.delete(&own)?;
            self.add_place(filters)?;
            filters.filters.iter().try_for_each(|filter| {
                self.add(filter).map_err(|source| {
                    io::Error::new(source.kind(), format!("the filter `{}`: {source}", filter.display_data.name))
                })
            })
        })
    }

    /// Takes filters away, and what they belong to, if nothing else does.
    ///
    /// # Errors
    /// The first thing that fails; nothing is changed then. What is gone already is no error.
    pub fn remove(&self, keys: &[String], place: Option<&Filters>) -> io::Result<()> {
        self.transaction(|| {
            self.delete(keys)?;
            match place {
                Some(filters) => self.delete_place(filters),
                None => Ok(()),
            }
        })
    }

    #[allow(unsafe_code)]
    fn transaction(&self, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        // SAFETY: the session is open; flag 0 is to read and write.
        check(unsafe { wfp::FwpmTransactionBegin0(self.0, 0) })?;
        match act() {
            // SAFETY: the transaction was begun above, and is ended here.
            Ok(()) => check(unsafe { wfp::FwpmTransactionCommit0(self.0) }),
            Err(error) => {
                // SAFETY: as above. What fails here is undone when the session is closed.
                unsafe { wfp::FwpmTransactionAbort0(self.0) };
                Err(error)
            }
        }
    }

    #[allow(unsafe_code)]
    fn delete(&self, keys: &[String]) -> io::Result<()> {
        for key in keys {
            let key = guid(key)?;
            // SAFETY: the session is open, and the key is ours.
            unless(unsafe { wfp::FwpmFilterDeleteByKey0(self.0, &raw const key) }, &[FWP_E_FILTER_NOT_FOUND])?;
        }
        Ok(())
    }

    /// The provider and the sublayer, which may be there.
    #[allow(unsafe_code)]
    fn add_place(&self, filters: &Filters) -> io::Result<()> {
        let (name, mut key) = (wide(&filters.provider.display_data.name)?, guid(&filters.provider.provider_key)?);
        // SAFETY: plain data, for which zero is a valid value.
        let mut provider: wfp::FWPM_PROVIDER0 = unsafe { std::mem::zeroed() };
        provider.providerKey = key;
        provider.displayData.name = name.as_ptr().cast_mut();
        // SAFETY: the session is open; what the structure points to outlives the call.
        unless(unsafe { wfp::FwpmProviderAdd0(self.0, &raw const provider, null_mut()) }, &[FWP_E_ALREADY_EXISTS])?;
        let name = wide(&filters.sublayer.display_data.name)?;
        // SAFETY: as above.
        let mut sublayer: wfp::FWPM_SUBLAYER0 = unsafe { std::mem::zeroed() };
        sublayer.subLayerKey = guid(&filters.sublayer.sub_layer_key)?;
        sublayer.displayData.name = name.as_ptr().cast_mut();
        sublayer.providerKey = &raw mut key;
        sublayer.weight = filters.sublayer.weight;
        // SAFETY: as above.
        unless(unsafe { wfp::FwpmSubLayerAdd0(self.0, &raw const sublayer, null_mut()) }, &[FWP_E_ALREADY_EXISTS])
    }

    #[allow(unsafe_code)]
    fn delete_place(&self, filters: &Filters) -> io::Result<()> {
        let (sublayer, provider) = (guid(&filters.sublayer.sub_layer_key)?, guid(&filters.provider.provider_key)?);
        // SAFETY: the session is open, and the key is ours.
        let gone = unsafe { wfp::FwpmSubLayerDeleteByKey0(self.0, &raw const sublayer) };
        unless(gone, &[FWP_E_SUBLAYER_NOT_FOUND, FWP_E_IN_USE])?;
        // SAFETY: as above.
        let gone = unsafe { wfp::FwpmProviderDeleteByKey0(self.0, &raw const provider) };
        unless(gone, &[FWP_E_PROVIDER_NOT_FOUND, FWP_E_IN_USE])
    }

    #[allow(unsafe_code)]
    fn add(&self, filter: &Filter) -> io::Result<()> {
        let mut kept = Kept::default();
        let conditions = filter.filter_condition.iter().map(|condition| kept.condition(condition));
        let mut conditions: Vec<_> = conditions.collect::<io::Result<_>>()?;
        let (name, description) = (wide(&filter.display_data.name)?, wide(&filter.display_data.description)?);
        let mut provider = guid(&filter.provider_key)?;
        let super::read::Weight::Exact { uint64: mut weight } = filter.weight;
        // SAFETY: plain data and pointers, for which zero is a valid value.
        let mut submitted: wfp::FWPM_FILTER0 = unsafe { std::mem::zeroed() };
        submitted.filterKey = guid(&filter.filter_key)?;
        submitted.displayData.name = name.as_ptr().cast_mut();
        submitted.displayData.description = description.as_ptr().cast_mut();
        submitted.providerKey = &raw mut provider;
        submitted.layerKey = named(LAYERS, &filter.layer_key)?;
        submitted.subLayerKey = guid(&filter.sub_layer_key)?;
        submitted.weight.r#type = wfp::FWP_UINT64;
        submitted.weight.Anonymous.uint64 = &raw mut weight;
        submitted.numFilterConditions = u32::try_from(conditions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        submitted.filterCondition = conditions.as_mut_ptr();
        submitted.action.r#type = named(ACTIONS, &filter.action.r#type)?;
        // SAFETY: the session is open; all that the structure points to is in `kept` and the variables above, and outlives the call.
        check(unsafe { wfp::FwpmFilterAdd0(self.0, &raw const submitted, null_mut(), null_mut()) })
    }
}

/// An answer, where some errors mean that there was nothing to do.
fn unless(code: u32, nothing: &[i32]) -> io::Result<()> {
    if code == 0 || nothing.contains(&code.cast_signed()) { Ok(()) } else { Err(error(code)) }
}

const LAYERS: &[(&str, GUID)] = &[
    ("FWPM_LAYER_ALE_AUTH_CONNECT_V4", wfp::FWPM_LAYER_ALE_AUTH_CONNECT_V4),
    ("FWPM_LAYER_ALE_AUTH_CONNECT_V6", wfp::FWPM_LAYER_ALE_AUTH_CONNECT_V6),
    ("FWPM_LAYER_ALE_AUTH_LISTEN_V4", wfp::FWPM_LAYER_ALE_AUTH_LISTEN_V4),
    ("FWPM_LAYER_ALE_AUTH_LISTEN_V6", wfp::FWPM_LAYER_ALE_AUTH_LISTEN_V6),
    ("FWPM_LAYER_ALE_AUTH_RECV_ACCEPT_V4", wfp::FWPM_LAYER_ALE_AUTH_RECV_ACCEPT_V4),
    ("FWPM_LAYER_ALE_AUTH_RECV_ACCEPT_V6", wfp::FWPM_LAYER_ALE_AUTH_RECV_ACCEPT_V6),
    ("FWPM_LAYER_ALE_RESOURCE_ASSIGNMENT_V4", wfp::FWPM_LAYER_ALE_RESOURCE_ASSIGNMENT_V4),
    ("FWPM_LAYER_ALE_RESOURCE_ASSIGNMENT_V6", wfp::FWPM_LAYER_ALE_RESOURCE_ASSIGNMENT_V6),
];

const FIELDS: &[(&str, GUID)] = &[
    ("FWPM_CONDITION_ALE_USER_ID", wfp::FWPM_CONDITION_ALE_USER_ID),
    ("FWPM_CONDITION_IP_PROTOCOL", wfp::FWPM_CONDITION_IP_PROTOCOL),
    ("FWPM_CONDITION_IP_LOCAL_ADDRESS", wfp::FWPM_CONDITION_IP_LOCAL_ADDRESS),
    ("FWPM_CONDITION_IP_LOCAL_PORT", wfp::FWPM_CONDITION_IP_LOCAL_PORT),
    ("FWPM_CONDITION_IP_REMOTE_ADDRESS", wfp::FWPM_CONDITION_IP_REMOTE_ADDRESS),
    ("FWPM_CONDITION_IP_REMOTE_PORT", wfp::FWPM_CONDITION_IP_REMOTE_PORT),
];

const ACTIONS: &[(&str, wfp::FWP_ACTION_TYPE)] =
    &[("FWP_ACTION_PERMIT", wfp::FWP_ACTION_PERMIT), ("FWP_ACTION_BLOCK", wfp::FWP_ACTION_BLOCK)];

const MATCHES: &[(&str, wfp::FWP_MATCH_TYPE)] =
    &[("FWP_MATCH_EQUAL", wfp::FWP_MATCH_EQUAL), ("FWP_MATCH_RANGE", wfp::FWP_MATCH_RANGE)];

/// What a name stands for; one that is not known is an error, and no filter is added.
fn named<T: Copy>(table: &[(&str, T)], name: &str) -> io::Result<T> {
    let found = table.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("`{name}` is not known")))
}

/// `{6ad40ae1-4824-89e5-ae73-5a55bfd8ebd9}`
fn guid(text: &str) -> io::Result<GUID> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, format!("`{text}` is no key"));
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(wrong)?;
    let lengths: Vec<usize> = inner.split('-').map(str::len).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return Err(wrong());
    }
    let bits = u128::from_str_radix(&inner.replace('-', ""), 16).map_err(|_| wrong())?;
    Ok(GUID::from_u128(bits))
}

/// What the structures of one filter point to: as long as it is there, so is that.
// Boxed, so that they stay where they are when there are more of them.
#[allow(clippy::vec_box)]
#[derive(Default)]
struct Kept {
    descriptors: Vec<(Local, Box<wfp::FWP_BYTE_BLOB>)>,
    ranges: Vec<Box<wfp::FWP_RANGE0>>,
    addresses: Vec<Box<wfp::FWP_BYTE_ARRAY16>>,
    networks4: Vec<Box<wfp::FWP_V4_ADDR_AND_MASK>>,
    networks6: Vec<Box<wfp::FWP_V6_ADDR_AND_MASK>>,
}

/// Keeps a value, and shows where it is.
#[allow(clippy::vec_box)]
fn keep<T>(kept: &mut Vec<Box<T>>, value: T) -> *mut T {
    let mut value = Box::new(value);
    let at = &raw mut *value;
    kept.push(value);
    at
}

impl Kept {
    #[allow(unsafe_code)]
    fn condition(&mut self, condition: &Condition) -> io::Result<wfp::FWPM_FILTER_CONDITION0> {
        // SAFETY: plain data and pointers, for which zero is a valid value.
        let mut submitted: wfp::FWPM_FILTER_CONDITION0 = unsafe { std::mem::zeroed() };
        submitted.fieldKey = named(FIELDS, &condition.field_key)?;
        submitted.matchType = named(MATCHES, &condition.match_type)?;
        let to = &mut submitted.conditionValue;
        match &condition.condition_value {
            Value::V4Network { network } => {
                to.r#type = wfp::FWP_V4_ADDR_MASK;
                let network = wfp::FWP_V4_ADDR_AND_MASK { addr: network.addr.to_bits(), mask: network.mask.to_bits() };
                to.Anonymous.v4AddrMask = keep(&mut self.networks4, network);
            }
            Value::V6Network { network } => {
                to.r#type = wfp::FWP_V6_ADDR_MASK;
                let network =
                    wfp::FWP_V6_ADDR_AND_MASK { addr: network.addr.octets(), prefixLength: network.prefix_length };
                to.Anonymous.v6AddrMask = keep(&mut self.networks6, network);
            }
            Value::Account { sd } => {
                to.r#type = wfp::FWP_SECURITY_DESCRIPTOR_TYPE;
                to.Anonymous.sd = self.descriptor(sd)?;
            }
            Value::Range { range } => {
                let range = wfp::FWP_RANGE0 {
                    valueLow: self.value(&range.value_low)?,
                    valueHigh: self.value(&range.value_high)?,
                };
                to.r#type = wfp::FWP_RANGE_TYPE;
                to.Anonymous.rangeValue = keep(&mut self.ranges, range);
            }
            single => {
                let value = self.value(single)?;
                to.r#type = value.r#type;
                // SAFETY: of a value and of a condition's value the unions have the same members at the same places; for these
                // types they hold a number or a pointer of at most eight bytes.
                unsafe { to.Anonymous.uint64 = value.Anonymous.uint64 };
            }
        }
        Ok(submitted)
    }

    /// A single value, as it stands alone or in a range.
    #[allow(unsafe_code)]
    fn value(&mut self, value: &Value) -> io::Result<wfp::FWP_VALUE0> {
        // SAFETY: plain data and pointers, for which zero is a valid value.
        let mut to: wfp::FWP_VALUE0 = unsafe { std::mem::zeroed() };
        match value {
            Value::Byte { uint8 } => {
                to.r#type = wfp::FWP_UINT8;
                to.Anonymous.uint8 = *uint8;
            }
            Value::Port { uint16 } => {
                to.r#type = wfp::FWP_UINT16;
                to.Anonymous.uint16 = *uint16;
            }
            // As a number, whatever the order of its bytes in memory.
            Value::V4 { uint32 } => {
                to.r#type = wfp::FWP_UINT32;
                to.Anonymous.uint32 = Ipv4Addr::to_bits(*uint32);
            }
            Value::V6 { address } => {
                to.r#type = wfp::FWP_BYTE_ARRAY16_TYPE;
                let address = wfp::FWP_BYTE_ARRAY16 { byteArray16: address.octets() };
                to.Anonymous.byteArray16 = keep(&mut self.addresses, address);
            }
            Value::V4Network { .. } | Value::V6Network { .. } | Value::Account { .. } | Value::Range { .. } => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a range has ends that are no single values"));
            }
        }
        Ok(to)
    }

    /// A security descriptor in the form that the platform takes: one piece, with its length.
    #[allow(unsafe_code)]
    fn descriptor(&mut self, sddl: &str) -> io::Result<*mut wfp::FWP_BYTE_BLOB> {
        let sddl = wide(sddl)?;
        let mut made: PSECURITY_DESCRIPTOR = null_mut();
        let mut size = 0;
        // SAFETY: the text ends in NUL; the call fills in memory that is given back by `LocalFree`, and its length.
        done(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                sddl.as_ptr(),
                SDDL_REVISION_1,
                &raw mut made,
                &raw mut size,
            )
        })?;
        let mut blob = Box::new(wfp::FWP_BYTE_BLOB { size, data: made.cast() });
        let at = &raw mut *blob;
        self.descriptors.push((Local(made), blob));
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_are_read_whole() {
        let key = guid("{6ad40ae1-4824-89e5-ae73-5a55bfd8ebd9}").unwrap();
        assert_eq!(
            (key.data1, key.data2, key.data3, key.data4[0], key.data4[7]),
            (0x6ad4_0ae1, 0x4824, 0x89e5, 0xae, 0xd9)
        );
        for wrong in [
            "",
            "6ad40ae1-4824-89e5-ae73-5a55bfd8ebd9",
            "{6ad40ae1-4824-89e5-ae73-5a55bfd8ebd}",
            "{gad40ae1-4824-89e5-ae73-5a55bfd8ebd9}",
        ] {
            assert!(guid(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_that_are_not_known_add_nothing() {
        assert!(named(LAYERS, "FWPM_LAYER_ALE_AUTH_CONNECT_V4").is_ok());
        assert!(named(LAYERS, "FWPM_LAYER_INBOUND_IPPACKET_V4").is_err());
        assert!(named(MATCHES, "FWP_MATCH_NOT_EQUAL").is_err());
    }
}
