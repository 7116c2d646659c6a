<?php
/* One act on the site, as WordPress itself does it: php act.php '{"act": …}'; prints JSON. */
$asked                     = json_decode( $argv[1], true );
$_SERVER['HTTP_HOST']      = parse_url( getenv( 'WORDPRESS_URL' ), PHP_URL_HOST ) . ':' . parse_url( getenv( 'WORDPRESS_URL' ), PHP_URL_PORT );
$_SERVER['REQUEST_METHOD'] = 'GET';
if ( 'install' === $asked['act'] ) {
	define( 'WP_INSTALLING', true );
}
require __DIR__ . '/wp-load.php';

/* Each change has a moment of its own, or those of one second would have one Last-Modified. */
if ( isset( $asked['at'] ) ) {
	add_filter(
		'wp_insert_post_data',
		function ( $data ) use ( $asked ) {
			$data['post_modified']     = $asked['at'];
			$data['post_modified_gmt'] = $asked['at'];
			return $data;
		}
	);
}

function find( $name ) {
	$found = get_posts( array( 'name' => $name, 'post_status' => 'any', 'numberposts' => 1 ) );
	return $found[0]->ID;
}

switch ( $asked['act'] ) {
	case 'install':
		require ABSPATH . 'wp-admin/includes/upgrade.php';
		// It would tell the owner by mail.
		add_filter( 'pre_wp_mail', '__return_true' );
		wp_install( 'Baking news', 'ada', 'ada@example.test', true, '', 'secret' );
		switch_theme( $asked['theme'] );
		global $wp_rewrite;
		$wp_rewrite->set_permalink_structure( '/%year%/%monthnum%/%postname%/' );
		$wp_rewrite->flush_rules( false );
		$told = true;
		break;
	case 'empty':
		foreach ( get_posts( array( 'numberposts' => -1, 'post_status' => 'any,trash', 'post_type' => array( 'post', 'page', 'attachment' ) ) ) as $post ) {
			wp_delete_post( $post->ID, true );
		}
		$told = true;
		break;
	case 'add':
		$id   = wp_insert_post(
			array(
				'post_name'     => $asked['name'],
				'post_title'    => $asked['title'],
				'post_content'  => $asked['content'],
				'post_status'   => 'publish',
				'post_author'   => 1,
				'post_date'     => $asked['at'],
				'post_date_gmt' => $asked['at'],
			),
			true
		);
		$told = get_permalink( $id );
		break;
	case 'edit':
		$changes = array( 'ID' => find( $asked['name'] ) );
		foreach ( array( 'title', 'content' ) as $key ) {
			if ( isset( $asked[ $key ] ) ) {
				$changes[ "post_$key" ] = $asked[ $key ];
			}
		}
		$told = wp_update_post( $changes, true );
		break;
	case 'trash':
		$told = (bool) wp_trash_post( find( $asked['name'] ) );
		break;
	case 'user':
		$id = username_exists( $asked['name'] );
		$id = $id ? $id : wp_insert_user(
			array(
				'user_login'   => $asked['name'],
				'user_pass'    => wp_generate_password(),
				'user_email'   => "{$asked['name']}@example.test",
				'display_name' => ucfirst( $asked['name'] ),
				'role'         => $asked['role'],
			)
		);
		$told = WP_Application_Passwords::create_new_application_password( $id, array( 'name' => uniqid() ) )[0];
		break;
	case 'category':
		$told = wp_insert_term( $asked['title'], 'category' )['term_id'];
		break;
	case 'plugin':
		/* What somebody has installed on the site; an empty one removes it. */
		wp_mkdir_p( WPMU_PLUGIN_DIR );
		$told = false !== file_put_contents( WPMU_PLUGIN_DIR . '/test.php', "<?php\n" . $asked['code'] );
		break;
	case 'look':
		$told = array();
		foreach ( get_posts( array( 'numberposts' => -1, 'post_status' => 'any,trash', 'post_type' => 'post', 'orderby' => 'ID', 'order' => 'ASC' ) ) as $post ) {
			$image  = get_post_thumbnail_id( $post );
			$told[] = array(
				'id'         => $post->ID,
				'status'     => $post->post_status,
				'slug'       => $post->post_name,
				'title'      => $post->post_title,
				'content'    => $post->post_content,
				'shown'      => apply_filters( 'the_content', $post->post_content ),
				'excerpt'    => $post->post_excerpt,
				'tags'       => wp_get_post_tags( $post->ID, array( 'fields' => 'names' ) ),
				'categories' => wp_get_post_categories( $post->ID, array( 'fields' => 'names' ) ),
				'image'      => $image ? get_post_meta( $image, '_wp_attachment_image_alt', true ) : '',
			);
		}
		$told = array( $told );
		break;
	case 'media':
		$told = array( wp_list_pluck( get_posts( array( 'numberposts' => -1, 'post_type' => 'attachment', 'post_status' => 'any' ) ), 'post_name' ) );
		break;
	case 'comment':
		$told = wp_insert_comment(
			array(
				'comment_post_ID'  => find( $asked['name'] ),
				'comment_author'   => 'Eve',
				'comment_content'  => $asked['content'],
				'comment_approved' => 1,
			)
		);
		break;
}
echo json_encode( is_wp_error( $told ) ? array( 'error' => $told->get_error_message() ) : $told );
