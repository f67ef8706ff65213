//! Seeded mistakes of what emits the filters, made in what was emitted: each must be caught by the program's own reader, and
//! by the evaluator.

use super::{Case, cases, difference};
use sandbox_runtime::backend::wfp::Needs;
use sandbox_runtime::verify::wfp::prove_filters;
use serde_json::{Value, json};

type Mistake = fn(&mut Value) -> bool;

/// Whether the first filter that is fit for a change was changed.
fn first(artefact: &mut Value, change: impl Fn(&mut Value) -> bool) -> bool {
    artefact["filters"].as_array_mut().unwrap().iter_mut().any(change)
}

fn conditions(filter: &mut Value) -> &mut Vec<Value> {
    filter["filterCondition"].as_array_mut().unwrap()
}

fn is(filter: &Value, layer: &str, action: &str) -> bool {
    filter["layerKey"].as_str().unwrap().contains(layer) && filter["action"]["type"].as_str().unwrap().ends_with(action)
}

fn weight(filter: &Value) -> u64 {
    filter["weight"]["uint64"].as_u64().unwrap()
}

/// Takes conditions of a field away from the first filter that has one and is of a layer and action.
fn without(artefact: &mut Value, layer: &str, action: &str, field: &str) -> bool {
    first(artefact, |filter| {
        let fit = is(filter, layer, action);
        let before = conditions(filter).len();
        if fit {
            conditions(filter).retain(|condition| !condition["fieldKey"].as_str().unwrap().contains(field));
        }
        conditions(filter).len() < before
    })
}

/// Changes the first condition value that is fit for it.
fn value(artefact: &mut Value, change: impl Fn(&mut Value) -> bool) -> bool {
    first(artefact, |filter| conditions(filter).iter_mut().any(|condition| change(&mut condition["conditionValue"])))
}

fn remove(artefact: &mut Value, which: impl Fn(&Value) -> bool) -> bool {
    let filters = artefact["filters"].as_array_mut().unwrap();
    let before = filters.len();
    filters.retain(|filter| !which(filter));
    filters.len() < before
}

const MISTAKES: &[(&str, Mistake)] = &[
    ("weights are all equal", |artefact| {
        artefact["filters"].as_array_mut().unwrap().iter_mut().for_each(|filter| filter["weight"]["uint64"] = json!(1));
        true
    }),
    ("weights are upside down", |artefact| {
        artefact["filters"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|filter| filter["weight"]["uint64"] = json!(1000 - weight(filter)));
        true
    }),
    ("two weights of rules are swapped", |artefact| {
        let high = |filter: &Value| is(filter, "AUTH_CONNECT_V4", "BLOCK") && weight(filter) > 1;
        first(artefact, |filter| {
            let fit = high(filter);
            if fit {
                filter["weight"]["uint64"] = json!(0);
            }
            fit
        })
    }),
    ("the system chooses a weight", |artefact| {
        first(artefact, |filter| {
            filter["weight"] = json!({ "type": "FWP_EMPTY" });
            true
        })
    }),
    ("IPv6 is left out", |artefact| remove(artefact, |filter| filter["layerKey"].as_str().unwrap().ends_with("_V6"))),
    ("IPv4 listening is left out", |artefact| remove(artefact, |filter| is(filter, "AUTH_LISTEN_V4", ""))),
    ("incoming connections are left out", |artefact| remove(artefact, |filter| is(filter, "RECV_ACCEPT", ""))),
    ("local ports are left out", |artefact| remove(artefact, |filter| is(filter, "RESOURCE_ASSIGNMENT", ""))),
    ("the block of what no rule permits is left out", |artefact| {
        remove(artefact, |filter| is(filter, "AUTH_CONNECT_V4", "BLOCK") && weight(filter) == 0)
    }),
    ("the way to the proxy is left out", |artefact| {
        remove(artefact, |filter| filter["displayData"]["name"] == "proxy")
    }),
    ("the proxy is reached on every port", |artefact| {
        first(artefact, |filter| {
            let fit = filter["displayData"]["name"] == "proxy";
            if fit {
                conditions(filter).pop();
            }
            fit
        })
    }),
    ("the proxy is reached on every address", |artefact| {
        first(artefact, |filter| {
            let fit = filter["displayData"]["name"] == "proxy";
            if fit {
                conditions(filter).remove(2);
            }
            fit
        })
    }),
    ("a port ends one too early", |artefact| {
        value(artefact, |value| {
            let high = &mut value["rangeValue"]["valueHigh"]["uint16"];
            let fit = high.as_u64().is_some_and(|high| high > 2000);
            if fit {
                *high = json!(high.as_u64().unwrap() - 1);
            }
            fit
        })
    }),
    ("a port begins one too early", |artefact| {
        value(artefact, |value| {
            let low = &mut value["rangeValue"]["valueLow"]["uint16"];
            let fit = low.as_u64().is_some_and(|low| low > 0);
            if fit {
                *low = json!(low.as_u64().unwrap() - 1);
            }
            fit
        })
    }),
    ("a mask is one bit too short", |artefact| {
        value(artefact, |value| {
            let mask = &mut value["v4AddrMask"]["mask"];
            let fit = *mask == "255.255.0.0";
            if fit {
                *mask = json!("255.254.0.0");
            }
            fit
        })
    }),
    ("a prefix is one bit too short", |artefact| {
        value(artefact, |value| {
            let length = &mut value["v6AddrMask"]["prefixLength"];
            let fit = *length == 32;
            if fit {
                *length = json!(31);
            }
            fit
        })
    }),
    ("the addresses of a rule are forgotten", |artefact| without(artefact, "AUTH_CONNECT", "PERMIT", "REMOTE_ADDRESS")),
    ("the ports of a rule are forgotten", |artefact| without(artefact, "AUTH_CONNECT", "PERMIT", "REMOTE_PORT")),
    ("the transport of a rule is forgotten", |artefact| without(artefact, "AUTH_CONNECT", "PERMIT", "PROTOCOL")),
    ("the transport of binding is forgotten", |artefact| without(artefact, "RESOURCE", "PERMIT", "PROTOCOL")),
    ("the account is forgotten", |artefact| without(artefact, "AUTH_CONNECT", "BLOCK", "ALE_USER_ID")),
    ("local is taken for remote", |artefact| {
        first(artefact, |filter| {
            let fit = is(filter, "RECV_ACCEPT", "PERMIT");
            for condition in conditions(filter).iter_mut().filter(|_| fit) {
                let field = condition["fieldKey"].as_str().unwrap().replace("LOCAL", "REMOTE");
                condition["fieldKey"] = json!(field);
            }
            fit
        })
    }),
    ("a field that the layer does not have", |artefact| {
        first(artefact, |filter| {
            let fit = is(filter, "AUTH_LISTEN", "");
            if fit {
                let value = json!({ "type": "FWP_UINT8", "uint8": 6 });
                conditions(filter).push(json!({
                    "conditionValue": value,
                    "fieldKey": "FWPM_CONDITION_IP_PROTOCOL",
                    "matchType": "FWP_MATCH_EQUAL",
                }));
            }
            fit
        })
    }),
    ("a value of the wrong type", |artefact| {
        value(artefact, |value| {
            let fit = value["type"] == "FWP_UINT16";
            if fit {
                value["type"] = json!("FWP_UINT32");
            }
            fit
        })
    }),
    ("permit and block are swapped", |artefact| {
        first(artefact, |filter| {
            let fit = is(filter, "AUTH_CONNECT", "PERMIT");
            if fit {
                filter["action"]["type"] = json!("FWP_ACTION_BLOCK");
            }
            fit
        })
    }),
    ("a denial is forgotten", |artefact| {
        let mut dropped = false;
        artefact["filters"].as_array_mut().unwrap().retain(|filter| {
            let this = !dropped && is(filter, "AUTH_CONNECT", "BLOCK") && weight(filter) > 0;
            dropped |= this;
            !this
        });
        dropped
    }),
    ("a permit is forgotten", |artefact| {
        let mut dropped = false;
        artefact["filters"].as_array_mut().unwrap().retain(|filter| {
            let name = filter["displayData"]["name"] == "proxy";
            let this = !dropped && !name && is(filter, "AUTH_CONNECT", "PERMIT");
            dropped |= this;
            !this
        });
        dropped
    }),
    ("two filters with one key", |artefact| {
        let filters = artefact["filters"].as_array_mut().unwrap();
        let key = filters[0]["filterKey"].clone();
        filters[1]["filterKey"] = key;
        true
    }),
    ("another sublayer", |artefact| {
        first(artefact, |filter| {
            filter["subLayerKey"] = json!("{00000000-0000-0000-0000-000000000000}");
            true
        })
    }),
];

#[test]
#[cfg_attr(windows, ignore = "asks an evaluator in Python, which Wine cannot start")]
fn each_mistake_is_caught_twice() {
    let cases = cases(60, 4711);
    let mut missed = Vec::new();
    for (name, mistake) in MISTAKES {
        let mut changed: Vec<(&Case, Value)> = Vec::new();
        for case in &cases {
            let mut artefact: Value = serde_json::from_str(&case.text).unwrap();
            if mistake(&mut artefact) {
                changed.push((case, artefact));
            }
        }
        assert!(changed.len() >= 3, "{name}: only {} artefacts are fit for it", changed.len());
        let read = |(case, artefact): &&(&Case, Value)| {
            prove_filters(&case.policy, &case.gaps, &Needs::default().proxy_ports, &artefact.to_string()).is_err()
        };
        let by_reader = changed.iter().filter(read).count();
        let own: Vec<Case> = changed
            .iter()
            .map(|(case, _)| Case {
                policy: case.policy.clone(),
                gaps: Vec::new(),
                text: String::new(),
                probes: case.probes.clone(),
            })
            .collect();
        let artefacts: Vec<Value> = changed.iter().map(|(_, artefact)| artefact.clone()).collect();
        let by_oracle = difference(&own, &artefacts).is_some();
        println!("{name}: read back wrong {by_reader} times of {}, by the evaluator: {by_oracle}", changed.len());
        if by_reader == 0 || !by_oracle {
            missed.push(*name);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// How many there are.
pub fn count() -> usize {
    MISTAKES.len()
}
