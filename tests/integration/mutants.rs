//! Seeded mistakes, each of which the comparison with the brute force must catch.
//!
//! The mistakes are made in the brute force, not in the library: the two agree on every case, so a case on which a wrong
//! brute force differs from the right library is one on which a library with that mistake would differ from the right
//! brute force. Nothing in the library knows of this.

#[cfg(debug_assertions)]
mod sets;

use crate::analysis::generated;
use crate::semantics::brute::{Mistake, World};
use crate::semantics::{cases, compare, runner};
use proptest::test_runner::TestCaseError;

/// As many as the comparison itself runs; a mistake is usually found in the first hundreds.
const CASES: u32 = 10_000;

macro_rules! mutants {
    ($($name:ident: $mistake:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            assert_caught(Mistake::$mistake);
        })+

        const TABLE: &[Mistake] = &[$(Mistake::$mistake),+];
    };
}

mutants! {
    a_deep_star_that_is_never_empty: DeepIsNotEmpty,
    a_deep_star_that_is_one_segment: DeepIsOneSegment,
    a_tree_that_is_its_node: TreeIsItsNode,
    a_tree_without_its_node: TreeLacksItsNode,
    below_with_its_node: BelowHasItsNode,
    a_star_that_crosses_a_slash: StarCrossesSlash,
    a_star_that_is_never_empty: StarIsNotEmpty,
    a_question_mark_that_may_be_empty: QuestionMayBeEmpty,
    a_negated_class_that_is_plain: NegatedClassIsPlain,
    variables_outside_every_deep_star: VariablesLieOutsideDeep,
    an_except_that_is_ignored: ExceptIsIgnored,
    an_except_that_is_exact: ExceptIsExact,
    equal_sets_taken_for_more_specific: EqualIsMoreSpecific,
    overlap_taken_for_more_specific: OverlapIsMoreSpecific,
    length_taken_for_more_specific: LongerIsMoreSpecific,
    nothing_more_specific: NothingIsMoreSpecific,
    one_opened_deny_opens_all: OneOpenedDenyIsEnough,
    a_forbid_that_can_be_opened: ForbidCanBeOpened,
    exec_denied_by_default: ExecIsDeniedByDefault,
    a_read_denial_that_is_forgotten: ReadDenialIsForgotten,
    a_default_read_denial_that_binds_writes: DefaultReadDenialBindsWrites,
    the_apex_below_itself: ApexIsBelow,
    below_a_host_by_one_label_only: BelowIsOneLabel,
    hosts_by_suffix_of_the_text: LabelsBySuffix,
    ports_that_end_early: PortsEndEarly,
    ports_that_start_early: PortsStartEarly,
    a_protocol_that_is_forgotten: ProtocolIsForgotten,
    ports_not_compared: PortsAreNotCompared,
    a_deny_without_the_forms_that_carry: DenyLacksForms,
    an_allow_with_the_forms_that_carry: AllowHasForms,
    forms_not_compared: FormsAreNotCompared,
    a_guard_that_is_forgotten: GuardIsForgotten,
    private_addresses_taken_for_special: PrivateIsSpecial,
    private_addresses_taken_for_public: PrivateIsPublic,
    a_star_that_opens_private_addresses: StarOpensPrivate,
    ip_rules_that_do_not_deny_names: IpRulesDoNotDenyNames,
    an_ip_allow_that_needs_no_name: IpAllowNeedsNoName,
    an_environment_that_is_closed: EnvironmentIsClosed,
}

macro_rules! mutants_of_questions {
    ($($name:ident: $mistake:ident),+ $(,)?) => {
        /// The same for questions about whole policies.
        mod questions {
            use super::*;

            $(#[test]
            fn $name() {
                assert_caught_by_questions(Mistake::$mistake);
            })+

            pub const TABLE: &[Mistake] = &[$(Mistake::$mistake),+];
        }
    };
}

mutants_of_questions! {
    a_deep_star_that_is_never_empty: DeepIsNotEmpty,
    a_tree_without_its_node: TreeLacksItsNode,
    a_star_that_crosses_a_slash: StarCrossesSlash,
    variables_outside_every_deep_star: VariablesLieOutsideDeep,
    an_except_that_is_ignored: ExceptIsIgnored,
    equal_sets_taken_for_more_specific: EqualIsMoreSpecific,
    exec_denied_by_default: ExecIsDeniedByDefault,
    a_read_denial_that_is_forgotten: ReadDenialIsForgotten,
    the_apex_below_itself: ApexIsBelow,
    ports_that_end_early: PortsEndEarly,
    a_protocol_that_is_forgotten: ProtocolIsForgotten,
    a_deny_without_the_forms_that_carry: DenyLacksForms,
    a_star_that_opens_private_addresses: StarOpensPrivate,
    ip_rules_that_do_not_deny_names: IpRulesDoNotDenyNames,
    openers_that_are_forgotten: OpenersAreForgotten,
    openers_that_permit_all_they_hold: OpenersArePermitted,
    defaults_that_are_forgotten: DefaultsAreForgotten,
    a_longest_witness_for_a_shortest: LongestForShortest,
    a_guard_that_is_not_asked: GuardIsNotAsked,
    proofs_that_speak_of_private_addresses: ProofsSpeakOfPrivate,
    old_and_new_swapped: OldAndNewAreSwapped,
}

fn assert_caught_by_questions(mistake: Mistake) {
    let (right, wrong) = (World::new(None), World::new(Some(mistake)));
    let outcome = runner(CASES, 0).run(&generated::pairs(), |(draft, whose)| {
        generated::compare(&wrong, &right, &draft, &whose).map(drop).map_err(TestCaseError::fail)
    });
    assert!(outcome.is_err(), "{mistake:?} is not caught");
}

fn assert_caught(mistake: Mistake) {
    let (right, wrong) = (World::new(None), World::new(Some(mistake)));
    let outcome = runner(CASES, 0)
        .run(&cases::drafts(), |draft| compare(&wrong, &draft.build(&right)).map(drop).map_err(TestCaseError::fail));
    assert!(outcome.is_err(), "{mistake:?} is not caught");
}

#[test]
fn every_mistake_is_in_the_table() {
    // Written out once more by the compiler: a mistake that nothing here tries is never constructed, and warned of.
    assert_eq!(TABLE.len(), 38);
    // Those that only questions about whole policies can make come on top.
    assert_eq!(questions::TABLE.iter().filter(|mistake| !TABLE.contains(mistake)).count(), 7);
}
