"""Decides connections as the Windows Filtering Platform does, from the filters that `srt` emits.

Written from Microsoft's documentation ("Filter Arbitration", "Filter Weight Assignment", "Filtering conditions available at
each filtering layer", FWPM_FILTER0) and from nothing of srt's. Reads one JSON object a line: {"filters": ARTEFACT, "accesses":
[…]}; writes one JSON list a line, of true (permitted), false (blocked) or a text that says what is wrong.
"""

import ipaddress
import json
import sys

# Which fields a classification at a layer carries. Only those that are about the endpoint and the account are listed.
ENDPOINT = {"ALE_USER_ID", "ALE_APP_ID", "IP_LOCAL_ADDRESS", "IP_LOCAL_ADDRESS_TYPE", "IP_LOCAL_PORT", "FLAGS"}
REMOTE = {"IP_REMOTE_ADDRESS", "IP_REMOTE_PORT", "IP_PROTOCOL", "IP_DESTINATION_ADDRESS_TYPE"}
LAYERS = {
    "ALE_AUTH_CONNECT": ENDPOINT | REMOTE,
    "ALE_AUTH_RECV_ACCEPT": ENDPOINT | REMOTE,
    "ALE_AUTH_LISTEN": ENDPOINT,
    "ALE_RESOURCE_ASSIGNMENT": ENDPOINT | {"IP_PROTOCOL", "ALE_PROMISCUOUS_MODE"},
}
CARRIED = {f"FWPM_LAYER_{name}_{family}": (fields, family) for name, fields in LAYERS.items() for family in ("V4", "V6")}


class Refused(Exception):
    """The base filtering engine would not take the filter, or its meaning is not defined."""


def address(text, family):
    value = ipaddress.ip_address(text)
    if value.version != int(family[1]):
        raise Refused(f"{text} at a layer of {family}")
    return int(value)


def value(field, data, family):
    """A single value, as a number, of the one type the field has."""
    kind = data["type"]
    if field.endswith("ADDRESS"):
        if family == "V4" and kind == "FWP_UINT32":
            return address(data["uint32"], family)
        if family == "V6" and kind == "FWP_BYTE_ARRAY16_TYPE":
            return address(data["byteArray16"], family)
    elif field.endswith("PORT") and kind == "FWP_UINT16" and 0 <= data["uint16"] <= 0xFFFF:
        return data["uint16"]
    elif field == "IP_PROTOCOL" and kind == "FWP_UINT8" and 0 <= data["uint8"] <= 0xFF:
        return data["uint8"]
    raise Refused(f"{field} is not a {kind}")


def matcher(field, condition, family):
    """A function from a classified value to whether the condition holds."""
    match, data = condition["matchType"], condition["conditionValue"]
    if field == "ALE_USER_ID":
        if match != "FWP_MATCH_EQUAL" or data["type"] != "FWP_SECURITY_DESCRIPTOR_TYPE":
            raise Refused("a user is matched by a security descriptor")
        start, end = "O:LSD:(A;;CC;;;", ")"
        descriptor = data["sd"]
        if not descriptor.startswith(start) or not descriptor.endswith(end):
            raise Refused(f"a security descriptor that is not understood: {descriptor}")
        sid = descriptor[len(start) : -len(end)]
        return lambda user: user == sid
    if match == "FWP_MATCH_RANGE":
        if data["type"] != "FWP_RANGE_TYPE":
            raise Refused("a range is a range")
        low, high = (value(field, data["rangeValue"][end], family) for end in ("valueLow", "valueHigh"))
        if low > high:
            raise Refused("a range that is upside down")
        return lambda seen: low <= seen <= high
    if match != "FWP_MATCH_EQUAL":
        raise Refused(match)
    if field.endswith("ADDRESS") and data["type"] == "FWP_V4_ADDR_MASK" and family == "V4":
        mask = address(data["v4AddrMask"]["mask"], family)
        base = address(data["v4AddrMask"]["addr"], family)
        return lambda seen: seen & mask == base & mask
    if field.endswith("ADDRESS") and data["type"] == "FWP_V6_ADDR_MASK" and family == "V6":
        bits = data["v6AddrMask"]["prefixLength"]
        if not 0 <= bits <= 128:
            raise Refused("a prefix is at most 128 bits long")
        mask = (1 << 128) - (1 << (128 - bits))
        base = address(data["v6AddrMask"]["addr"], family)
        return lambda seen: seen & mask == base & mask
    one = value(field, data, family)
    return lambda seen: seen == one


def prepared(filters, sublayer):
    """The filters by layer: (weight, permits, [(field, [matcher])])."""
    layers = {layer: [] for layer in CARRIED}
    keys = set()
    for item in filters:
        if item["layerKey"] not in CARRIED:
            raise Refused(item["layerKey"])
        if item["subLayerKey"] != sublayer:
            raise Refused("a filter of another sublayer")
        if item["filterKey"] in keys:
            raise Refused("FWP_E_ALREADY_EXISTS")
        keys.add(item["filterKey"])
        fields, family = CARRIED[item["layerKey"]]
        groups = []
        for condition in item["filterCondition"]:
            field = condition["fieldKey"].removeprefix("FWPM_CONDITION_")
            if field not in fields:
                raise Refused(f"FWP_E_CONDITION_NOT_FOUND: {field} at {item['layerKey']}")
            holds = matcher(field, condition, family)
            # Consecutive conditions on one field are alternatives; everything else must hold together.
            if groups and groups[-1][0] == field:
                groups[-1][1].append(holds)
            else:
                groups.append((field, [holds]))
        if item["weight"]["type"] != "FWP_UINT64":
            raise Refused("a weight that the engine makes up")
        actions = {"FWP_ACTION_PERMIT": True, "FWP_ACTION_BLOCK": False}
        layers[item["layerKey"]].append((item["weight"]["uint64"], actions[item["action"]["type"]], groups))
    for layer in layers.values():
        layer.sort(key=lambda item: -item[0])
    return layers


def classify(layers, name, packet):
    """Arbitration within the sublayer: the highest weight that matches; without a match the packet passes."""
    answers, weight = set(), None
    for own, permits, groups in layers[name]:
        if weight is not None and own < weight:
            break
        if all(any(holds(packet[field]) for holds in alternatives) for field, alternatives in groups):
            answers.add(permits)
            weight = own
    if len(answers) > 1:
        raise Refused(f"filters of one weight disagree at {name}")
    return answers != {False}


def decided(layers, access):
    """What becomes of an operation, through every layer that it is classified at."""
    seen = ipaddress.ip_address(access["address"])
    # A dual-stack socket is classified as IPv4 where the address is mapped.
    if seen.version == 6 and seen.ipv4_mapped:
        seen = seen.ipv4_mapped
    family = f"V{seen.version}"
    layer = lambda name: f"FWPM_LAYER_ALE_{name}_{family}"
    user = access.get("user", "$ACCOUNT")
    any_address = 0
    if access["operation"] == "connect":
        packet = {
            "ALE_USER_ID": user,
            "IP_PROTOCOL": access["protocol"],
            "IP_LOCAL_ADDRESS": any_address,
            "IP_LOCAL_PORT": 49999,
            "IP_REMOTE_ADDRESS": int(seen),
            "IP_REMOTE_PORT": access["port"],
        }
        return classify(layers, layer("RESOURCE_ASSIGNMENT"), packet) and classify(layers, layer("AUTH_CONNECT"), packet)
    packet = {
        "ALE_USER_ID": user,
        "IP_PROTOCOL": access["protocol"],
        "IP_LOCAL_ADDRESS": int(seen),
        "IP_LOCAL_PORT": access["port"],
        "IP_REMOTE_ADDRESS": int(ipaddress.ip_address("198.51.100.7" if family == "V4" else "2001:db8:ffff::7")),
        "IP_REMOTE_PORT": 40404,
    }
    if access["operation"] == "bind":
        return classify(layers, layer("RESOURCE_ASSIGNMENT"), packet)
    if access["operation"] == "receive":
        return classify(layers, layer("AUTH_RECV_ACCEPT"), packet)
    listens = classify(layers, layer("RESOURCE_ASSIGNMENT"), packet) and classify(layers, layer("AUTH_LISTEN"), packet)
    # What listens on every address takes connections at each one, which is classified there.
    return listens and (int(seen) == 0 or classify(layers, layer("AUTH_RECV_ACCEPT"), packet))


def main():
    for line in sys.stdin:
        case = json.loads(line)
        artefact = case["filters"]
        try:
            layers = prepared(artefact["filters"], artefact["sublayer"]["subLayerKey"])
        except (Refused, ValueError, KeyError, TypeError) as why:
            print(json.dumps([f"refused: {why}"] * len(case["accesses"])))
            continue
        answers = []
        for access in case["accesses"]:
            try:
                answers.append(decided(layers, access))
            except Refused as why:
                answers.append(f"refused: {why}")
        print(json.dumps(answers))


main()
