/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "accept/known.h"

static json_t *document(const char *hosts, const char *path)
{
	char text[2000];
	snprintf(text, sizeof(text),
		 "{'xportbench': '1', 'config': {'op': 'send', 'window': 64}, 'hosts': [%s], 'transports': "
		 "[{'label': 't', 'requested_path': null, 'resolved_path': '%s', 'device': 'd', 'library': "
		 "'l', "
		 "'version': '1'}]}",
		 hosts, path);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	json_t *made = json_loads(text, 0, NULL);
	assert_non_null(made);
	return made;
}

#define HOST(name, cpu) "{'name': '" name "', 'cpu': 'fast', 'kernel': '6', 'cpus_used': [" cpu "]}"
#define THREE HOST("a", "0") "," HOST("b", "1") "," HOST("c", "2")
#define PATH "tcp 10.0.0.1:40000 -> 10.0.0.2:50000 on eth0, spinning, nodelay"

/* The kinds of the differences, each with a '!' when it rules out a comparison. */
static const char *differences(const char *then_hosts, const char *then_path, const char *now_hosts,
			       const char *now_path)
{
	static char kinds[400];
	json_t *then = document(then_hosts, then_path), *now = document(now_hosts, now_path), *entry;
	json_t *list = xb_baseline_differences(now, then);
	size_t i;

	*kinds = '\0';
	json_array_foreach(list, i, entry)
	{
		strcat(kinds, *kinds ? " " : "");
		strcat(kinds, json_string_value(json_object_get(entry, "kind")));
		strcat(kinds, json_is_true(json_object_get(entry, "comparable")) ? "" : "!");
	}
	json_decref(list);
	json_decref(then);
	json_decref(now);
	return kinds;
}

static void hosts_are_matched_by_name(void **state)
{
	(void)state;
	assert_string_equal(differences(THREE, PATH, THREE, PATH), "");
	assert_string_equal(
		differences(THREE, PATH, HOST("c", "2") "," HOST("a", "0") "," HOST("b", "1"), PATH), "");
	/* one was left out */
	assert_string_equal(differences(THREE, PATH, HOST("a", "0") "," HOST("c", "2"), PATH), "hosts");
	/* other cores of a host are other cores, whatever the others have */
	assert_string_equal(
		differences(THREE, PATH, HOST("c", "0") "," HOST("a", "0") "," HOST("b", "1"), PATH),
		"placement!");
	/* a new one among known ones is told */
	assert_string_equal(
		differences(THREE, PATH, HOST("a", "0") "," HOST("b", "1") "," HOST("x", "5"), PATH),
		"hosts");
}

static void without_a_known_name_the_order_counts(void **state)
{
	(void)state;
	assert_string_equal(
		differences(HOST("a", "0") "," HOST("b", "1"), PATH, HOST("x", "0") "," HOST("y", "2"), PATH),
		"hosts placement! hosts");
}

static void of_a_path_the_addresses_do_not_count(void **state)
{
	(void)state;
	static const struct {
		const char *then, *now, *differences;
	} paths[] = {
		{PATH, "tcp 10.0.0.3:1 -> 10.0.0.9:2 on eth0, spinning, nodelay", ""},
		{PATH, "tcp [fe80::1]:1 -> [fe80::2]:2 on eth0, spinning, nodelay", ""},
		{PATH, "tcp 10.0.0.1:40000 -> 10.0.0.2:50000 on eth1, spinning, nodelay", "configuration!"},
		{PATH, "tcp 10.0.0.1:40000 -> 10.0.0.2:50000 on eth0, blocking, nodelay", "configuration!"},
		{"RC on mlx5_0 port 1, InfiniBand lid 12, gid 0 (fe80::1), mtu 4096, inline 64",
		 "RC on mlx5_0 port 1, InfiniBand lid 7, gid 3 (fe80::beef:2), mtu 4096, inline 64", ""},
		{"RC on mlx5_0 port 1, InfiniBand lid 12, mtu 4096, inline 64",
		 "RC on mlx5_0 port 1, InfiniBand lid 12, mtu 2048, inline 64", "configuration!"},
		{"tcp/eth0", "rc_mlx5/mlx5_0:1", "configuration!"},
	};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_string_equal(differences(THREE, paths[i].then, THREE, paths[i].now),
				    paths[i].differences);
}

/* The difference between runs with these members of their configuration, or "". */
static const char *of_configs(const char *then_config, const char *now_config)
{
	static char text[200];
	json_t *then = document(THREE, PATH), *now = document(THREE, PATH);

	json_object_update_new(json_object_get(then, "config"), json_loads(then_config, 0, NULL));
	json_object_update_new(json_object_get(now, "config"), json_loads(now_config, 0, NULL));
	json_t *list = xb_baseline_differences(now, then), *first = json_array_get(list, 0);
	assert_true(json_array_size(list) <= 1);
	assert_false(json_is_true(json_object_get(first, "comparable")));
	snprintf(text, sizeof(text), "%s", first ? json_string_value(json_object_get(first, "text")) : "");
	json_decref(list);
	json_decref(then);
	json_decref(now);
	return text;
}

static void pairs_alone_and_at_the_same_time_are_not_compared(void **state)
{
	(void)state;
#define CONFIG(serial, endpoints) "{\"serial\": " serial ", \"endpoints\": " endpoints "}"
	assert_string_equal(of_configs(CONFIG("true", "8"), CONFIG("false", "8")),
			    "pairs at a time (--serial): one when the baseline was recorded, many now");
	assert_string_equal(of_configs(CONFIG("false", "8"), CONFIG("false", "3")),
			    "pairs at a time (--serial): many when the baseline was recorded, one now");
	assert_string_equal(of_configs(CONFIG("true", "8"), CONFIG("false", "2")), "");
	assert_string_equal(of_configs(CONFIG("false", "8"), CONFIG("false", "4")), "");
	assert_string_equal(of_configs("{}", CONFIG("false", "8")), ""); /* it does not tell */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_matched_by_name),
		cmocka_unit_test(without_a_known_name_the_order_counts),
		cmocka_unit_test(of_a_path_the_addresses_do_not_count),
		cmocka_unit_test(pairs_alone_and_at_the_same_time_are_not_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
