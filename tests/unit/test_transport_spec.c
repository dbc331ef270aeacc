/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/config.h"

static struct xb_config config; /* large; every test leaves it empty */

static void parse(const char *text)
{
	struct xb_error error = {0};

	if (xb_parse_transports(text, &config, &error))
		fail_msg("'%s': %s", text, error.text);
}

static void transports_come_in_the_order_given(void **state)
{
	(void)state;
	parse("tcp,ofi:tcp,ucx:rc,mpi");
	assert_int_equal(config.transport_count, 4);
	assert_string_equal(config.transports[0].name, "tcp");
	assert_string_equal(config.transports[0].path, "");
	assert_string_equal(config.transports[0].label, "tcp");
	assert_string_equal(config.transports[0].text, "tcp");
	assert_string_equal(config.transports[1].name, "ofi");
	assert_string_equal(config.transports[1].path, "tcp");
	assert_string_equal(config.transports[1].label, "ofi:tcp");
	assert_string_equal(config.transports[3].name, "mpi");
	assert_null(config.transports[3].trace);
	assert_int_equal(config.transports[3].key_count + config.transports[3].env_count +
				 config.transports[3].fault_count,
			 0);
	xb_config_free(&config);
}

static void only_the_first_colon_separates(void **state)
{
	static const struct {
		const char *text, *name, *path;
	} cases[] = {
		{"verbs:mlx5_0/1", "verbs", "mlx5_0/1"},
		{"verbs:mlx5_0:1", "verbs", "mlx5_0:1"},
		{"ucx:rc/mlx5_0:1", "ucx", "rc/mlx5_0:1"},
		{"ofi:verbs;ofi_rxm", "ofi", "verbs;ofi_rxm"},
		{"ofi:tcp;ofi_rxm@fd00:88::1", "ofi", "tcp;ofi_rxm@fd00:88::1"},
		{"tcp:enp129s0f0np0.7", "tcp", "enp129s0f0np0.7"},
		{"tcp::1", "tcp", ":1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		parse(cases[i].text);
		assert_int_equal(config.transport_count, 1);
		assert_string_equal(config.transports[0].name, cases[i].name);
		assert_string_equal(config.transports[0].path, cases[i].path);
		assert_string_equal(config.transports[0].label, cases[i].text);
		xb_config_free(&config);
	}
}

static void an_item_with_an_equals_sign_belongs_to_the_transport_before_it(void **state)
{
	const struct xb_transport_spec *spec = config.transports;

	(void)state;
	parse("tcp:lo,poll=block,sndbuf=64K,tcp:lo,label=two,nodelay=0,mpi");
	assert_int_equal(config.transport_count, 3);
	assert_int_equal(spec[0].key_count, 2);
	assert_string_equal(spec[0].keys[0].key, "poll");
	assert_string_equal(spec[0].keys[0].value, "block");
	assert_string_equal(spec[0].keys[1].key, "sndbuf");
	assert_string_equal(spec[0].keys[1].value, "64K");
	assert_string_equal(spec[0].text, "tcp:lo,poll=block,sndbuf=64K");
	assert_string_equal(spec[1].label, "two");
	assert_int_equal(spec[1].key_count, 1);
	assert_string_equal(spec[1].keys[0].key, "nodelay");
	assert_string_equal(spec[1].text, "tcp:lo,label=two,nodelay=0");
	assert_int_equal(spec[2].key_count, 0);
	assert_string_equal(spec[2].text, "mpi");
	xb_config_free(&config);
}

static void keys_are_sorted_by_whom_they_are_for(void **state)
{
	const struct xb_transport_spec *spec = config.transports;

	(void)state;
	parse("ucx:tcp,env.UCX_RNDV_THRESH=8k,fault.delay=2us,fault.premature,trace=/tmp/"
	      "ops.txt,fault.step=8K/5us,"
	      "env.EMPTY=,env.A=b=c,x=");
	assert_int_equal(config.transport_count, 1);
	assert_int_equal(spec->env_count, 3);
	assert_string_equal(spec->env[0].key, "UCX_RNDV_THRESH");
	assert_string_equal(spec->env[0].value, "8k");
	assert_string_equal(spec->env[1].key, "EMPTY");
	assert_string_equal(spec->env[1].value, "");
	assert_string_equal(spec->env[2].value, "b=c"); /* only the first equals sign separates */
	assert_int_equal(spec->fault_count, 3);
	assert_string_equal(spec->fault[0].key, "delay");
	assert_string_equal(spec->fault[0].value, "2us");
	assert_string_equal(spec->fault[1].key, "premature");
	assert_string_equal(spec->fault[1].value, "");
	assert_string_equal(spec->fault[2].value, "8K/5us");
	assert_string_equal(spec->trace, "/tmp/ops.txt");
	assert_int_equal(spec->key_count, 1);
	assert_string_equal(spec->keys[0].value, "");
	xb_config_free(&config);
}

static void a_backslash_lets_a_comma_into_a_value(void **state)
{
	const struct xb_transport_spec *spec = config.transports;

	(void)state;
	parse("ucx:tcp,env.UCX_TLS=tcp\\,self,mpi,env.X=a\\\\b");
	assert_int_equal(config.transport_count, 2);
	assert_string_equal(spec[0].env[0].value, "tcp,self");
	assert_string_equal(spec[0].text,
			    "ucx:tcp,env.UCX_TLS=tcp\\,self"); /* as given: can be given again */
	assert_string_equal(spec[1].env[0].value, "a\\b");
	xb_config_free(&config);
}

static void the_same_transport_twice_needs_a_label(void **state)
{
	struct xb_error error = {0};

	(void)state;
	assert_int_equal(xb_parse_transports("tcp,tcp", &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "both called 'tcp'"));
	assert_non_null(strstr(error.text, "label="));
	assert_int_equal(config.transport_count, 0);
	/* keys alone do not tell them apart */
	assert_int_equal(xb_parse_transports("tcp,tcp,poll=block", &config, &error), XB_E_USAGE);
	/* a label may not be what another one is called anyway */
	assert_int_equal(xb_parse_transports("ofi:tcp,tcp,label=ofi:tcp", &config, &error), XB_E_USAGE);
	assert_int_equal(xb_parse_transports("tcp,label=a,mpi,label=a", &config, &error), XB_E_USAGE);
	parse("tcp,label=a,tcp,label=b,tcp");
	assert_int_equal(config.transport_count, 3);
	assert_string_equal(config.transports[2].label, "tcp");
	/* nor what is there already */
	assert_int_equal(xb_parse_transports("mpi,tcp", &config, &error), XB_E_USAGE);
	assert_int_equal(config.transport_count, 3);
	assert_null(config.transports[3].name);
	xb_config_free(&config);
}

static void labels_are_short_and_printable(void **state)
{
	(void)state;
	parse("tcp,label=The small buffer (64K) #2; 100%");
	assert_string_equal(config.transports[0].label, "The small buffer (64K) #2; 100%");
	xb_config_free(&config);
	parse("tcp,label=123456789012345678901234567890123456789012345678");
	xb_config_free(&config);
}

static void what_is_no_list_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "empty item"},
		{",", "empty item"},
		{"tcp,", "empty item"},
		{",tcp", "empty item"},
		{"tcp,,mpi", "empty item"},
		{"label=x", "begins with the key 'label=x'"},
		{"poll=block,tcp", "begins with the key"},
		{"fault.delay=2us", "begins with the key"},
		{"fault.premature", "begins with the key"},
		{"tcp:a=b", "begins with the key"},
		{"tcp,mpi:a=b", "'mpi:a=b' is not a key of transport 'tcp'"},
		{"tcp,=1", "is not a key"},
		{"tcp,Poll=1", "is not a key"},
		{"tcp,1x=1", "is not a key"},
		{"tcp,other.x=1", "is not a key"},
		{"TCP", "'TCP' is not a transport"},
		{"tcp:", "nothing after the ':'"},
		{":tcp", "is not a transport"},
		{"../tcp", "is not a transport"},
		{"t/cp:x", "is not a transport"},
		{"9p", "is not a transport"},
		{"-tcp", "is not a transport"},
		{"tcp mpi", "is not a transport"},
		{"abcdefghijklmnopqrstuvwxyzabcdefghijk", "is not a transport"},
		{"fault", "distorts another"},
		{"tcp,fault:x", "distorts another"},
		{"tcp,env.HOME", "needs a value"},
		{"tcp,label", "needs a value"},
		{"tcp,trace", "trace=FILE"},
		{"tcp,trace=", "trace= has no value"},
		{"tcp,label=", "0 characters"},
		{"tcp,label= x", "blank"},
		{"tcp,label=x ", "blank"},
		{"tcp,label=1234567890123456789012345678901234567890123456789", "49 characters"},
		{"tcp,label=\xc3\xa9t\xc3\xa9", "outside printable ASCII"},
		{"tcp,label=a,label=b", "given twice"},
		{"tcp,trace=a,trace=b", "given twice"},
		{"tcp,poll=spin,poll=block", "'poll' is given twice"},
		{"tcp,env.A=1,env.A=2", "'env.A' is given twice"},
		{"tcp,fault.delay=1us,fault.delay=2us", "'fault.delay' is given twice"},
		{"tcp,fault.", "names no fault"},
		{"tcp,fault.=1", "names no fault"},
		{"tcp,fault.A=1", "is not a key"},
		{"tcp,env.=1", "does not name an environment variable"},
		{"tcp,env.1A=1", "does not name an environment variable"},
		{"tcp,env.A-B=1", "does not name an environment variable"},
		{"tcp,env.A B=1", "does not name an environment variable"},
		{"tcp\x1b[2J", "control character (code 27)"},
		{"tcp\n", "control character (code 10)"},
		{"tcp,env.A=\x7f", "control character (code 127)"},
		{"tcp:\xff\xfe", "not valid UTF-8"},
		{"tcp:\xc3\xa9", "add label=TEXT"},
		{"tcp,env.A=\xc3", "not valid UTF-8"},
		{"tcp\\x", "backslash"},
		{"tcp,env.A=b\\", "backslash"},
		{"ofi:a-provider-with-a-name-that-is-far-too-long-for-a-column", "too long to head a column"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xb_error error = {0};

		assert_int_equal(xb_parse_transports(cases[i].text, &config, &error), XB_E_USAGE);
		if (!strstr(error.text, cases[i].says))
			fail_msg("'%s': \"%s\" does not say \"%s\"", cases[i].text, error.text,
				 cases[i].says);
		for (const char *p = error.text; *p; p++)
			assert_true(*p >= 0x20 && *p < 0x7f); /* nothing of it can talk to a terminal */
		assert_int_equal(config.transport_count, 0);
		assert_null(config.transports[0].name);
	}
}

static void limits_are_kept(void **state)
{
	struct xb_error error = {0};
	char *text = calloc(1, 100000);

	(void)state;
	for (unsigned i = 0; i < XB_MAX_TRANSPORTS; i++)
		sprintf(text + strlen(text), "%stcp,label=l%u", i ? "," : "", i);
	parse(text);
	assert_int_equal(config.transport_count, XB_MAX_TRANSPORTS);
	xb_config_free(&config);
	strcat(text, ",mpi");
	assert_int_equal(xb_parse_transports(text, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 16 transports"));

	strcpy(text, "tcp");
	for (unsigned i = 0; i < XB_MAX_KEYS; i++)
		sprintf(text + strlen(text), ",k%u=v,env.K%u=v,fault.k%u=v", i, i, i);
	parse(text);
	assert_int_equal(config.transports[0].key_count, XB_MAX_KEYS);
	assert_int_equal(config.transports[0].fault_count, XB_MAX_KEYS);
	xb_config_free(&config);
	strcat(text, ",last=v");
	assert_int_equal(xb_parse_transports(text, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "more than 64 keys"));

	memset(text, 0, 100000);
	strcpy(text, "tcp,env.A=");
	memset(text + strlen(text), 'x', 1024);
	parse(text);
	xb_config_free(&config);
	strcat(text, "x");
	assert_int_equal(xb_parse_transports(text, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "longer than 1024"));
	memset(text + strlen(text), 'x', 50000);
	assert_int_equal(xb_parse_transports(text, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "longer than"));
	memset(text, 0, 100000);
	strcpy(text, "tcp:");
	memset(text + 4, 'x', 256);
	assert_int_equal(xb_parse_transports(text, &config, &error), XB_E_USAGE);
	assert_non_null(strstr(error.text, "longer than 255"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transports_come_in_the_order_given),
		cmocka_unit_test(only_the_first_colon_separates),
		cmocka_unit_test(an_item_with_an_equals_sign_belongs_to_the_transport_before_it),
		cmocka_unit_test(keys_are_sorted_by_whom_they_are_for),
		cmocka_unit_test(a_backslash_lets_a_comma_into_a_value),
		cmocka_unit_test(the_same_transport_twice_needs_a_label),
		cmocka_unit_test(labels_are_short_and_printable),
		cmocka_unit_test(what_is_no_list_is_refused_with_a_reason),
		cmocka_unit_test(limits_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
