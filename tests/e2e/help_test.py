"""The program explains itself, and refuses what it doesn't know."""

import isthmus_cli
from isthmus_cli import run

VERBS = ["simulate", "whatif", "plan", "topology", "scenario", "validate", "report", "run",
         "compare"]


class HelpTest(isthmus_cli.CliTest):
    def test_help_goes_to_standard_output_and_names_the_verbs(self):
        result = run("--help")
        self.assert_ends(result, 0)
        self.assertEqual(result.stderr, "")
        for verb in VERBS:
            self.assertIn(verb, result.stdout)

    def test_every_verb_has_help_with_an_example(self):
        for verb in VERBS:
            with self.subTest(verb=verb):
                result = run(verb, "--help")
                self.assert_ends(result, 0)
                self.assertIn(f"isthmus {verb}", result.stdout)

    def test_unknown_verbs_are_user_errors(self):
        self.assert_user_error(run("simulaet"), "simulaet")

    def test_no_verb_is_a_user_error(self):
        self.assert_ends(run(), 2)

    def test_unknown_options_are_user_errors(self):
        self.assert_user_error(run("simulate", "--frobnicate"), "frobnicate")

    def test_a_missing_scenario_is_named(self):
        self.assert_user_error(run("simulate", "no/such/scenario.yaml"), "no/such/scenario.yaml")


if __name__ == "__main__":
    isthmus_cli.main()
