/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole program, where the verbs backend is left out. Include after cmocka.h, once. */
static void there_is_no_libibverbs_here(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(there_is_no_libibverbs_here)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
